// Weights with grouped codes are written as the descriptions of their formats say, element by element, and read back to
// the numbers that the codes stand for.

#include "io/grouped_weight.h"

#include <cmath>

#include <gtest/gtest.h>

#include "io/quantized_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/group_blocks.h"
#include "tests/io/packed_weights.h"

namespace weft::grouped_weight_test {

using namespace packed_weights;

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

// The tensors of GPTQ without the order of the columns, or those of AWQ.
TEST(GroupedWeight, ReadsAutoRound) {
  const Source source{.columns = 256, .group = 128};
  Written written = gptq(source);
  written.config = {{"quant_method", "auto-round"}, {"bits", 4}, {"group_size", 128}, {"sym", false}};
  expect_values(written, source, DType::i4g128);
  written.tensors.pop_back();
  expect_values(written, source, DType::i4g128);
  written.tensors = awq(source).tensors;
  written.config["packing_format"] = "auto_round:auto_awq";
  expect_values(written, source, DType::i4g128);
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
