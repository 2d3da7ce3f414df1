// Weights with grouped codes as some writers store them: zero points that are 0, codes in tensors of other types,
// scales of f32, and tensors that a weight does not need.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "io/grouped_weight.h"
#include "io/quantized_weight.h"
#include "tensor/group_blocks.h"
#include "tests/io/packed_weights.h"

namespace weft::grouped_variants_test {

using namespace packed_weights;

// All values of a code, 0 among them, next to each other.
int zero_point(const Source& source, std::int64_t n, std::int64_t g) {
  return static_cast<int>((n + 3 * g) % (1 << source.bits));
}

// GPTQ of the first version, with zero points that are stored by `less_one`.
Written with_zero_points(const Source& source, const At& less_one) {
  Written written = gptq(source);
  written.tensor("qzeros") = packed(source.groups(), kRows, source.bits, less_one);
  return written;
}

void expect_zero_points(const Written& written, const Source& source) {
  const Folder folder;
  const Checkpoint checkpoint = written.open(folder);
  const Tensor values = dequantized_weight(checkpoint, written.read_config(), kWeight);
  for (std::int64_t n = 0; n < kRows; ++n)
    for (std::int64_t k = 0; k < source.columns; ++k) {
      const std::int64_t g = source.group_of(k);
      const int wanted = source.code(n, k) - zero_point(source, n, g);
      ASSERT_EQ(values.as<float>()[n * source.columns + k], static_cast<float>(wanted) * source.scale(n, g))
          << n << " " << k;
    }
}

// AutoGPTQ: each zero point less one is masked by itself.
TEST(GroupedVariants, ReadZeroPointsOfZero) {
  for (const Source& source : {Source{}, Source{.bits = 8}}) {
    const int mask = (1 << source.bits) - 1;
    const At less_one = [&](std::int64_t g, std::int64_t n) { return (zero_point(source, n, g) - 1) & mask; };
    Written written = with_zero_points(source, less_one);
    expect_zero_points(written, source);
    written.config["meta"] = {{"quantizer", {"optimum:1.2", "auto_gptq:0.7"}}};
    expect_zero_points(written, source);
  }
}

// GPTQModel: the ones are subtracted from a word, so a zero point of 0 borrows from the next one.
TEST(GroupedVariants, ReadZeroPointsOfZeroThatBorrow) {
  for (const Source& source : {Source{}, Source{.bits = 8}}) {
    Written written = with_zero_points(source, [&](auto g, auto n) { return zero_point(source, n, g); });
    Tensor& words = written.tensor("qzeros");
    for (std::int64_t i = 0; i < words.meta.bytes().number() / 4; ++i)
      words.as<std::uint32_t>()[i] -= source.bits == 4 ? 0x11111111u : 0x01010101u;
    for (const json& quantizer : {json("gptqmodel:5.0.0"), json({"optimum:1.2", "gptqmodel:1.9"})}) {
      written.config["meta"] = {{"quantizer", quantizer}};
      expect_zero_points(written, source);
    }
  }
}

// The same bytes as a column of another type.
Tensor stored_as(const Tensor& bytes, DType dtype, std::int64_t element_bytes) {
  return Tensor::from_bytes(Meta::tensor(dtype, {bytes.meta.bytes().number() / element_bytes, 1}), bytes.data());
}

TEST(GroupedVariants, ReadCodesOfBitsandbytesInTensorsOfAnyType) {
  Written written = nf4(128, false);
  const Tensor bytes = written.tensor("weight");
  const auto numbers_of = [&] {
    const Folder folder;
    const Checkpoint checkpoint = written.open(folder);
    check_quantized_weight(checkpoint, written.read_config(), kWeight, kRows, 128);
    return dequantized_weight(checkpoint, written.read_config(), kWeight);
  };
  const Tensor wanted = numbers_of();
  struct Storage {
    const char* name;
    DType dtype;
    std::int64_t bytes;
  };
  for (const Storage& one : {Storage{"bfloat16", DType::bf16, 2}, Storage{"float16", DType::f16, 2},
                             Storage{"float32", DType::f32, 4}, Storage{"int8", DType::i8, 1}}) {
    written.config["bnb_4bit_quant_storage"] = one.name;
    written.tensor("weight") = stored_as(bytes, one.dtype, one.bytes);
    const Tensor came = numbers_of();
    EXPECT_EQ(std::memcmp(came.data(), wanted.data(), static_cast<std::size_t>(wanted.meta.bytes().number())), 0)
        << one.name;
  }
  written.tensor("weight") = numbers(DType::bf16, {kRows, 1}, [](auto) { return 1.0; });
  expect_parts(refusal(written), {kWeight, "u8[2560, 1]", "bf16[40, 1]"});
}

// A config without a type has the default fp4, and the tensors state the type.
TEST(GroupedVariants, ReadTheTypeThatTheTensorsOfBitsandbytesState) {
  Written written = nf4(128, true);
  const auto first_number = [&] {
    const Folder folder;
    const Checkpoint checkpoint = written.open(folder);
    const QuantizationConfig config = written.read_config();
    check_quantized_weight(checkpoint, config, kWeight, kRows, 128);
    EXPECT_EQ(grouped_meta(checkpoint, config, kWeight), Meta::tensor(DType::nf4g64, {kRows, 128}));
    return dequantized_weight(checkpoint, config, kWeight).as<float>()[1];
  };
  const float wanted = first_number();
  written.config.erase("bnb_4bit_quant_type");
  EXPECT_EQ(first_number(), wanted);
  written.tensors[2].name = kModule + ".weight.quant_state.bitsandbytes__fp4";
  expect_parts(refusal(written), {"bitsandbytes__fp4", "quant_type must be fp4", "nf4"});
}

TEST(GroupedVariants, ReadScalesOfF32) {
  expect_values(compressed_tensors({}, DType::f32), {}, DType::i4g32);
  const Source bytes{.bits = 8, .is_symmetric = true};
  expect_values(compressed_tensors(bytes, DType::f32), bytes, DType::i8g32);
}

TEST(GroupedVariants, RoundScalesOfF32BesideCodesOf4Bits) {
  const Source source{.is_symmetric = true};
  Written written = compressed_tensors(source, DType::f32);
  const auto scale = [](std::int64_t i) { return 0.1 + 0.0137 * static_cast<double>(i); };
  written.tensor("weight_scale") = numbers(DType::f32, {kRows, source.groups()}, scale);
  const Folder folder;
  const Tensor values = dequantized_weight(written.open(folder), written.read_config(), kWeight);
  for (std::int64_t n = 0; n < kRows; ++n)
    for (std::int64_t k = 0; k < source.columns; ++k) {
      const double wanted = (source.code(n, k) - 8) * scale(n * source.groups() + k / 32);
      ASSERT_NEAR(values.as<float>()[n * source.columns + k], wanted, std::fabs(wanted) * std::exp2(-11.0)) << n;
    }
}

// Zero points next to symmetric codes are numbers, or words of codes.
TEST(GroupedVariants, MayHaveZeroPointsThatAreZero) {
  const Source source{.is_symmetric = true};
  const std::string name = kModule + ".weight_zero_point";
  Written written = compressed_tensors(source);
  written.tensors.push_back({name, numbers(DType::i8, {kRows, source.groups()}, [](auto) { return 0.0; })});
  expect_values(written, source, DType::i4g32);
  written.tensor("weight_zero_point").as<std::int8_t>()[7] = 1;
  expect_parts(refusal(written), {name, "symmetric is true"});
  written.tensors.back().tensor = transposed(packed(source.groups(), kRows, 4, [](auto, auto) { return 8; }));
  expect_values(written, source, DType::i4g32);
  written.tensors.back().tensor = transposed(packed(source.groups(), kRows, 4, [](auto, auto) { return 7; }));
  expect_parts(refusal(written), {name, "symmetric is true"});
}

TEST(GroupedVariants, MayHaveGroupsInPlainOrder) {
  const Source source;
  const std::string name = kModule + ".weight_g_idx";
  Written written = compressed_tensors(source);
  written.tensors.push_back({name, groups_of_columns(source)});
  expect_values(written, source, DType::i4g32);
  written.tensors.back().tensor = numbers(DType::i32, {source.columns}, [](auto) { return -1.0; });
  expect_values(written, source, DType::i4g32);
  written.tensors.back().tensor = groups_of_columns({.is_shuffled = true});
  expect_parts(refusal(written), {name, "actorder is not group"});
  written.tensors.back().tensor = numbers(DType::i32, {source.columns / 2}, [](auto) { return 0.0; });
  expect_parts(refusal(written), {name, "i32[128]", "i32[64]"});
}

TEST(GroupedVariants, NameTheColumnsThatAreWantedWhereNoGroupsAre) {
  const Source source{.columns = 80, .group = 80, .is_symmetric = true};
  const std::string message = refusal(compressed_tensors(source), 80);
  expect_parts(message, {kWeight, "a multiple of 32 columns, but they have 80"});
  EXPECT_EQ(message.find("groups"), std::string::npos) << message;
}

// Codes of int8 with a scale for each row.
TEST(GroupedVariants, MayHaveZeroPointsThatAreZeroBesideInt8) {
  const json side{{"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}};
  json input = side;
  input.update({{"strategy", "token"}, {"dynamic", true}});
  const json group{{"targets", {"Linear"}}, {"weights", side}, {"input_activations", input}};
  const json config{
      {"quant_method", "compressed-tensors"}, {"format", "int-quantized"}, {"config_groups", {{"group_0", group}}}};
  const std::string name = kModule + ".weight_zero_point";
  Written written{config,
                  {{kWeight, numbers(DType::i8, {kRows, 64}, [](std::int64_t i) { return double(i % 100); })},
                   {kModule + ".weight_scale", numbers(DType::f32, {kRows, 1}, [](auto) { return 0.5; })},
                   {name, numbers(DType::i8, {kRows, 1}, [](auto) { return 0.0; })}}};
  EXPECT_EQ(refusal(written, 64), "");
  const std::vector<std::string> names = quantized_names(written.read_config(), kWeight).all();
  EXPECT_NE(std::find(names.begin(), names.end(), name), names.end());
  written.tensor("weight_zero_point").as<std::int8_t>()[3] = 2;
  expect_parts(refusal(written, 64), {name, "symmetric is true"});
}

}  // namespace weft::grouped_variants_test
