#pragma once

// Writes weights with grouped codes as the descriptions of their formats say, element by element, for tests of
// io/grouped_weight.h.

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/config_fields.h"
#include "io/grouped_weight.h"
#include "io/quantized_weight.h"
#include "tensor/convert.h"
#include "tensor/group_blocks.h"
#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::packed_weights {

using checkpoint_parts::Folder;
using nlohmann::json;

inline constexpr std::int64_t kRows = 40;  // more than are read at a time, and no multiple of them
inline constexpr const char* kWeight = "model.layers.0.mlp.up_proj.weight";
inline const std::string kModule = "model.layers.0.mlp.up_proj";

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
inline Tensor packed(std::int64_t rows, std::int64_t columns, int bits, const At& code,
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

inline Tensor transposed(const Tensor& words) {
  const std::int64_t rows = words.meta.shape[0].number(), columns = words.meta.shape[1].number();
  Tensor result = Tensor::empty(Meta::tensor(DType::i32, {columns, rows}));
  for (std::int64_t i = 0; i < rows * columns; ++i)
    result.as<std::int32_t>()[i % columns * rows + i / columns] = words.as<std::int32_t>()[i];
  return result;
}

inline Tensor numbers(DType dtype, Shape shape, const std::function<double(std::int64_t)>& value) {
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i)
    store_double(dtype, tensor.data(), i, value(i));
  return tensor;
}

inline Tensor groups_of_columns(const Source& source) {
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

inline Written compressed_tensors(const Source& source, DType scales = DType::bf16) {
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

inline Tensor scales_by_group(const Source& source) {
  return numbers(DType::f16, {source.groups(), kRows},
                 [&](std::int64_t i) { return source.scale(i % kRows, i / kRows); });
}

inline Written gptq(const Source& source, const std::string& format = "gptq") {
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

inline Written awq(const Source& source) {
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

inline void expect_values(const Written& written, const Source& source, DType dtype) {
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

// bitsandbytes: blocks of 64 elements of all rows, one after another; rows of 96 are one block and a half.
inline Written nf4(std::int64_t columns, bool has_quantized_scales) {
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

inline std::string refusal(const Written& written, std::int64_t columns = 128) {
  const Folder folder;
  const Checkpoint checkpoint = written.open(folder);
  const QuantizationConfig config = written.read_config();
  return message_of([&] {
    check_quantized_weight(checkpoint, config, kWeight, kRows, columns);
    dequantized_weight(checkpoint, config, kWeight);
  });
}

inline void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

}  // namespace weft::packed_weights
