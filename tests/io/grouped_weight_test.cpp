// Weights with grouped codes are written here as the descriptions of their formats say, element by element, and read
// back to the numbers that the codes stand for.

#include "io/grouped_weight.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "io/config_fields.h"
#include "io/quantized_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/float16.h"
#include "tensor/group_blocks.h"
#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::grouped_weight_test {

using checkpoint_parts::Folder;
using nlohmann::json;

constexpr std::int64_t kRows = 40;  // more than are read at a time, and no multiple of them
constexpr const char* kWeight = "model.layers.0.mlp.up_proj.weight";
const std::string kModule = "model.layers.0.mlp.up_proj";

// The codes, zero points and scales of a weight, and the group of each column.
struct Source {
  std::int64_t columns = 128, group = 32;
  int bits = 4;
  bool is_symmetric = false, is_shuffled = false;

  int code(std::int64_t n, std::int64_t k) const { return static_cast<int>((n * 7 + k * 5 + n * k / 3) % (1 << bits)); }
  int zero_point(std::int64_t n, std::int64_t g) const {
    return is_symmetric ? 1 << (bits - 1) : 1 + static_cast<int>((n + 3 * g) % 15);
  }
  float scale(std::int64_t n, std::int64_t g) const { return static_cast<float>(1 + (n * 3 + g) % 7) / 64.0f; }
  std::int64_t group_of(std::int64_t k) const { return (is_shuffled ? (k * 37 + 11) % columns : k) / group; }
  std::int64_t groups() const { return columns / group; }
  float value(std::int64_t n, std::int64_t k) const {
    const std::int64_t g = group_of(k);
    return static_cast<float>(code(n, k) - zero_point(n, g)) * scale(n, g);
  }
};

using At = std::function<int(std::int64_t row, std::int64_t column)>;

// Matrix [rows, columns] of codes as words of 32 bits: along each row, with the code of column c at `place(c)` of the
// columns.
Tensor packed(std::int64_t rows, std::int64_t columns, int bits, const At& code,
              const std::function<std::int64_t(std::int64_t)>& place = {}) {
  const std::int64_t of_word = 32 / bits, width = (columns + of_word - 1) / of_word;
  Tensor words = Tensor::empty(Meta::tensor(DType::i32, {rows, width}));
  std::memset(words.data(), 0, static_cast<std::size_t>(rows * width * 4));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = place ? place(column) : column;
      words.as<std::uint32_t>()[row * width + at / of_word] |= static_cast<std::uint32_t>(code(row, column))
                                                               << at % of_word * bits;
    }
  return words;
}

Tensor transposed(const Tensor& words) {
  const std::int64_t rows = words.meta.shape[0].number(), columns = words.meta.shape[1].number();
  Tensor result = Tensor::empty(Meta::tensor(DType::i32, {columns, rows}));
  for (std::int64_t i = 0; i < rows * columns; ++i)
    result.as<std::int32_t>()[i % columns * rows + i / columns] = words.as<std::int32_t>()[i];
  return result;
}

Tensor numbers(DType dtype, Shape shape, const std::function<double(std::int64_t)>& value) {
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i)
    store_double(dtype, tensor.data(), i, value(i));
  return tensor;
}

Tensor groups_of_columns(const Source& source) {
  return numbers(DType::i32, {source.columns}, [&](std::int64_t k) { return static_cast<double>(source.group_of(k)); });
}

struct Written {
  json config;
  std::vector<NamedTensor> tensors;

  Tensor& tensor(const std::string& end) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const NamedTensor& one) { return one.name == kModule + "." + end; })
        ->tensor;
  }
  QuantizationConfig read_config() const {
    const json all{{"quantization_config", config}};
    return quantization_from_json(JsonFields(all, "config.json")).value();
  }
  Checkpoint open(const Folder& folder) const {
    folder.add("model.safetensors", tensors);
    return Checkpoint::open(folder.path());
  }
};

Written compressed_tensors(const Source& source, DType scales = DType::bf16) {
  const std::int64_t groups = source.groups();
  json weights{{"num_bits", source.bits},
               {"type", "int"},
               {"symmetric", source.is_symmetric},
               {"strategy", "group"},
               {"group_size", source.group}};
  if (groups == 1) weights["strategy"] = "channel";
  if (source.is_shuffled) weights["actorder"] = "group";
  const json group{{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}};
  Written written{{{"quant_method", "compressed-tensors"},
                   {"format", "pack-quantized"},
                   {"ignore", {"lm_head"}},
                   {"config_groups", {{"group_0", group}}}},
                  {}};
  const auto code = [&](std::int64_t n, std::int64_t k) { return source.code(n, k); };
  const auto zero = [&](std::int64_t g, std::int64_t n) { return source.zero_point(n, g); };
  written.tensors = {
      {kModule + ".weight_packed", packed(kRows, source.columns, source.bits, code)},
      {kModule + ".weight_scale",
       numbers(scales, {kRows, groups}, [&](std::int64_t i) { return source.scale(i / groups, i % groups); })},
      {kModule + ".weight_shape",
       numbers(DType::i64, {2}, [&](std::int64_t i) { return static_cast<double>(i == 0 ? kRows : source.columns); })}};
  if (!source.is_symmetric)
    written.tensors.push_back({kModule + ".weight_zero_point", transposed(packed(groups, kRows, source.bits, zero))});
  if (source.is_shuffled) written.tensors.push_back({kModule + ".weight_g_idx", groups_of_columns(source)});
  return written;
}

Tensor scales_by_group(const Source& source) {
  return numbers(DType::f16, {source.groups(), kRows},
                 [&](std::int64_t i) { return source.scale(i % kRows, i / kRows); });
}

Written gptq(const Source& source, const std::string& format = "gptq") {
  Written written{{{"quant_method", "gptq"},
                   {"bits", source.bits},
                   {"group_size", source.groups() == 1 ? -1 : source.group},
                   {"desc_act", source.is_shuffled},
                   {"sym", source.is_symmetric},
                   {"checkpoint_format", format}},
                  {}};
  const int less = format == "gptq" ? 1 : 0;
  const auto code = [&](std::int64_t n, std::int64_t k) { return source.code(n, k); };
  const auto zero = [&](std::int64_t g, std::int64_t n) { return source.zero_point(n, g) - less; };
  written.tensors = {{kModule + ".qweight", transposed(packed(kRows, source.columns, source.bits, code))},
                     {kModule + ".qzeros", packed(source.groups(), kRows, source.bits, zero)},
                     {kModule + ".scales", scales_by_group(source)},
                     {kModule + ".g_idx", groups_of_columns(source)}};
  return written;
}

Written awq(const Source& source) {
  Written written{
      {{"quant_method", "awq"}, {"bits", 4}, {"group_size", source.group}, {"zero_point", true}, {"version", "gemm"}},
      {}};
  // A word has the columns 0 2 4 6 1 3 5 7 in this order.
  const auto place = [](std::int64_t n) { return n / 8 * 8 + (n % 2 == 0 ? n % 8 / 2 : 4 + n % 8 / 2); };
  const auto code = [&](std::int64_t k, std::int64_t n) { return source.code(n, k); };
  const auto zero = [&](std::int64_t g, std::int64_t n) { return source.zero_point(n, g); };
  written.tensors = {{kModule + ".qweight", packed(source.columns, kRows, 4, code, place)},
                     {kModule + ".qzeros", packed(source.groups(), kRows, 4, zero, place)},
                     {kModule + ".scales", scales_by_group(source)}};
  return written;
}

void expect_values(const Written& written, const Source& source, DType dtype) {
  const Folder folder;
  const Checkpoint checkpoint = written.open(folder);
  const QuantizationConfig config = written.read_config();
  check_quantized_weight(checkpoint, config, kWeight, kRows, source.columns);
  const GroupedWeight weight(checkpoint, config, kWeight);
  EXPECT_EQ(weight.meta(), Meta::tensor(dtype, {kRows, source.columns}));
  const Tensor values = dequantized_weight(checkpoint, config, kWeight);
  for (std::int64_t n = 0; n < kRows; ++n)
    for (std::int64_t k = 0; k < source.columns; ++k)
      ASSERT_EQ(values.as<float>()[n * source.columns + k], source.value(n, k)) << n << " " << k;
}

TEST(GroupedWeight, ReadsCompressedTensors) {
  expect_values(compressed_tensors({}), {}, DType::i4g32);
  expect_values(compressed_tensors({.is_symmetric = true}, DType::f16), {.is_symmetric = true}, DType::i4g32);
  const Source wide{.columns = 256, .group = 128}, whole{.columns = 96, .group = 96, .is_symmetric = true};
  expect_values(compressed_tensors(wide), wide, DType::i4g128);
  expect_values(compressed_tensors(whole), whole, DType::i4g32);
  const Source shuffled{.columns = 192, .group = 64, .is_shuffled = true};
  expect_values(compressed_tensors(shuffled), shuffled, DType::i4g64);
}

TEST(GroupedWeight, ReadsCompressedTensorsOfBytes) {
  const Source bytes{.bits = 8, .is_symmetric = true},
      whole{.columns = 96, .group = 96, .bits = 8, .is_symmetric = true};
  expect_values(compressed_tensors(bytes), bytes, DType::i8g32);
  expect_values(compressed_tensors(bytes, DType::f16), bytes, DType::q8_0);
  expect_values(compressed_tensors(whole), whole, DType::i8g32);
  const Source with_zeros{.bits = 8}, shuffled{.bits = 8, .is_shuffled = true};
  expect_values(compressed_tensors(with_zeros), with_zeros, DType::f32);
  expect_values(compressed_tensors(shuffled), shuffled, DType::f32);
}

TEST(GroupedWeight, ReadsGptq) {
  expect_values(gptq({}), {}, DType::i4g32);
  expect_values(gptq({}, "gptq_v2"), {}, DType::i4g32);
  const Source shuffled{.columns = 256, .group = 64, .is_shuffled = true}, whole{.columns = 128, .group = 128};
  expect_values(gptq(shuffled), shuffled, DType::i4g64);
  expect_values(gptq(whole), whole, DType::i4g128);
  const Source bytes{.bits = 8, .is_symmetric = true},
      shuffled_bytes{.bits = 8, .is_symmetric = true, .is_shuffled = true};
  expect_values(gptq(bytes), bytes, DType::q8_0);
  expect_values(gptq(shuffled_bytes), shuffled_bytes, DType::q8_0);
  const Source with_zeros{.bits = 8}, shuffled_zeros{.bits = 8, .is_shuffled = true};
  expect_values(gptq(with_zeros), with_zeros, DType::f32);
  expect_values(gptq(shuffled_zeros, "gptq_v2"), shuffled_zeros, DType::f32);
}

TEST(GroupedWeight, ReadsAwq) {
  expect_values(awq({}), {}, DType::i4g32);
  const Source wide{.columns = 256, .group = 128};
  expect_values(awq(wide), wide, DType::i4g128);
}

// The rows of the block type have the columns of each group one after another.
TEST(GroupedWeight, GivesTheOrderOfItsColumns) {
  const Source source{.is_shuffled = true};
  const Folder folder;
  const Written written = gptq(source);
  const GroupedWeight weight(written.open(folder), written.read_config(), kWeight);
  ASSERT_EQ(weight.order().size(), 128u);
  std::vector<std::byte> rows(static_cast<std::size_t>(bytes_of(DType::i4g32, 128)));
  weight.read_rows(33, 1, rows.data());
  for (std::size_t k = 0; k < 128; ++k) {
    EXPECT_EQ(source.group_of(weight.order()[k]), static_cast<std::int64_t>(k) / 32);
    EXPECT_EQ(load_float(DType::i4g32, rows.data(), static_cast<std::int64_t>(k)), source.value(33, weight.order()[k]));
  }
}

// bitsandbytes: blocks of 64 elements of all rows, one after another; rows of 96 are one block and a half.
Written nf4(std::int64_t columns, bool has_quantized_scales) {
  const std::int64_t blocks = kRows * columns / 64;
  json state{{"quant_type", "nf4"}, {"blocksize", 64}, {"dtype", "float32"}, {"shape", {kRows, columns}}};
  if (has_quantized_scales) state.update({{"nested_blocksize", 256}, {"nested_offset", 0.25}});
  const std::string text = state.dump();
  const auto byte = [](std::int64_t i) { return static_cast<double>((i * 7 + i / 11) % 256); };
  Written written{
      {{"quant_method", "bitsandbytes"},
       {"load_in_4bit", true},
       {"bnb_4bit_quant_type", "nf4"},
       {"bnb_4bit_use_double_quant", has_quantized_scales}},
      {{kModule + ".weight", numbers(DType::u8, {kRows * columns / 2, 1}, byte)},
       {kModule + ".weight.quant_map", numbers(DType::f32, {16}, [](std::int64_t i) { return kNf4Values[i]; })},
       {kModule + ".weight.quant_state.bitsandbytes__nf4",
        Tensor::from_bytes(Meta::tensor(DType::u8, {static_cast<std::int64_t>(text.size())}), text.data())}}};
  if (!has_quantized_scales) {
    written.tensors.push_back({kModule + ".weight.absmax",
                               numbers(DType::f32, {blocks}, [](std::int64_t i) { return 0.1 + 0.01 * double(i); })});
    return written;
  }
  written.tensors.push_back(
      {kModule + ".weight.absmax", numbers(DType::u8, {blocks}, [](std::int64_t i) { return double(i * 5 % 256); })});
  written.tensors.push_back({kModule + ".weight.nested_absmax", numbers(DType::f32, {1}, [](auto) { return 0.5; })});
  written.tensors.push_back({kModule + ".weight.nested_quant_map",
                             numbers(DType::f32, {256}, [](std::int64_t i) { return (double(i) - 128) / 128; })});
  return written;
}

float scale_of_nf4(std::int64_t block, bool has_quantized_scales) {
  if (!has_quantized_scales) return static_cast<float>(0.1 + 0.01 * double(block));
  return static_cast<float>(block * 5 % 256 - 128) / 128 * 0.5f + 0.25f;
}

TEST(GroupedWeight, ReadsNf4) {
  for (const std::int64_t columns : {128, 96}) {
    for (const bool has_quantized_scales : {false, true}) {
      const Written written = nf4(columns, has_quantized_scales);
      const Folder folder;
      const Checkpoint checkpoint = written.open(folder);
      const QuantizationConfig config = written.read_config();
      check_quantized_weight(checkpoint, config, kWeight, kRows, columns);
      EXPECT_EQ(grouped_meta(checkpoint, config, kWeight),
                Meta::tensor(columns == 128 ? DType::nf4g64 : DType::nf4g32, {kRows, columns}));
      const Tensor values = dequantized_weight(checkpoint, config, kWeight);
      const auto* bytes = checkpoint.tensor(kWeight).as<const std::uint8_t>();
      for (std::int64_t i = 0; i < kRows * columns; ++i) {
        const int code = i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
        ASSERT_EQ(values.as<float>()[i], kNf4Values[code] * scale_of_nf4(i / 64, has_quantized_scales)) << i;
      }
    }
  }
}

std::string refusal(const Written& written, std::int64_t columns = 128) {
  const Folder folder;
  const Checkpoint checkpoint = written.open(folder);
  const QuantizationConfig config = written.read_config();
  return message_of([&] {
    check_quantized_weight(checkpoint, config, kWeight, kRows, columns);
    dequantized_weight(checkpoint, config, kWeight);
  });
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

TEST(GroupedWeight, NamesTheTensorThatDiffers) {
  Written written = compressed_tensors({});
  written.tensor("weight_scale") = numbers(DType::bf16, {kRows, 2}, [](auto) { return 1.0; });
  expect_parts(refusal(written), {"weight_scale", "[40, 4]", "bf16[40, 2]"});
  written = compressed_tensors({});
  written.tensor("weight_shape").as<std::int64_t>()[1] = 256;
  expect_parts(refusal(written), {"weight_shape", "[40, 128]", "[40, 256]"});
  written = compressed_tensors({});
  written.tensors.pop_back();
  expect_parts(refusal(written), {"weight_zero_point"});
  written = gptq({.is_shuffled = true});
  written.tensors.pop_back();
  expect_parts(refusal(written), {"g_idx"});
  written = gptq({});
  store_float(DType::f16, written.tensor("scales").data(), 3, INFINITY);
  expect_parts(refusal(written), {"scales", "finite", "inf"});
}

TEST(GroupedWeight, NamesGroupsThatDoNotFit) {
  expect_parts(refusal(compressed_tensors({.group = 64}), 96), {kWeight, "rows of 96", "64"});
  Written written = gptq({});
  written.tensor("g_idx").as<std::int32_t>()[40] = 0;
  expect_parts(refusal(written), {"g_idx", "desc_act", "1 at 40", "0"});
  written = gptq({.is_shuffled = true});
  written.tensor("g_idx").as<std::int32_t>()[40] += 1;
  expect_parts(refusal(written), {"g_idx", "32 times"});
  // A file that states symmetry but has other zero points.
  const Source bytes{.bits = 8, .is_symmetric = false};
  written = gptq(bytes);
  written.config["sym"] = true;
  expect_parts(refusal(written), {"qzeros", "128", "sym is true"});
  // Codes of 2 and 3 bits: 40 rows fill no words of them.
  expect_parts(refusal(gptq({.bits = 2})), {kWeight, "40 rows", "words of 16 codes"});
  expect_parts(refusal(gptq({.bits = 3})), {kWeight, "40 rows", "words of 32 codes"});
}

TEST(GroupedWeight, NamesWhatTheStateOfNf4Lacks) {
  const auto with_state = [](const json& state) {
    Written written = nf4(128, false);
    const std::string text = state.dump();
    written.tensor("weight.quant_state.bitsandbytes__nf4") =
        Tensor::from_bytes(Meta::tensor(DType::u8, {static_cast<std::int64_t>(text.size())}), text.data());
    return refusal(written);
  };
  expect_parts(with_state({{"quant_type", "fp4"}, {"blocksize", 64}, {"shape", {40, 128}}}),
               {"quant_type must be nf4", "fp4"});
  expect_parts(with_state({{"quant_type", "nf4"}, {"blocksize", 96}, {"shape", {40, 128}}}), {"blocksize", "96"});
  expect_parts(with_state({{"quant_type", "nf4"}, {"blocksize", 64}, {"shape", {128, 40}}}),
               {"[40, 128]", "[128, 40]"});
  Written written = nf4(128, false);
  written.tensor("weight.quant_map").as<float>()[3] = -0.5f;
  expect_parts(refusal(written), {"quant_map", "-0.5"});
}

// Codes of 8 bits with a scale for each row.
Written bytes_of_rows(int format) {
  return {
      {{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}},
      {{kModule + ".weight", numbers(DType::i8, {kRows, 128}, [](std::int64_t i) { return double(i % 251 - 125); })},
       {kModule + ".SCB", numbers(DType::f32, {kRows}, [](std::int64_t n) { return 1.0 + double(n) / 8; })},
       {kModule + ".weight_format", numbers(DType::u8, {}, [=](std::int64_t) { return double(format); })}}};
}

TEST(GroupedWeight, ReadsBytesOfRows) {
  const Written written = bytes_of_rows(0);
  const Folder folder;
  const Checkpoint checkpoint = written.open(folder);
  check_quantized_weight(checkpoint, written.read_config(), kWeight, kRows, 128);
  EXPECT_EQ(grouped_meta(checkpoint, written.read_config(), kWeight), Meta::tensor(DType::i8g32, {kRows, 128}));
  const Tensor values = dequantized_weight(checkpoint, written.read_config(), kWeight);
  for (std::int64_t i = 0; i < kRows * 128; ++i)
    ASSERT_EQ(values.as<float>()[i],
              static_cast<float>(i % 251 - 125) * ((1 + static_cast<float>(i / 128) / 8) / 127.0f));
}

TEST(GroupedWeight, NamesWhatBytesOfRowsLack) {
  expect_parts(refusal(bytes_of_rows(2)), {"weight_format", "must be 0", "2"});
  Written written = bytes_of_rows(0);
  written.tensor("SCB") = numbers(DType::f32, {kRows - 1}, [](auto) { return 1.0; });
  expect_parts(refusal(written), {"SCB", "[40]", "[39]"});
  written = bytes_of_rows(0);
  written.tensor("SCB").as<float>()[3] = INFINITY;
  expect_parts(refusal(written), {"SCB", "finite"});
}

}  // namespace weft::grouped_weight_test
