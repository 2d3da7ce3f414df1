#include "quantize/weight_codes.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/run/eager.h"
#include "ir/sample.h"
#include "ops/dynamic_per_token_scaled_fp8_quant.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/scaled_fp4_quant.h"
#include "tensor/convert.h"

namespace weft::weight_codes_test {

Tensor some_weight(std::int64_t rows, std::int64_t columns) {
  return make_sample_tensor(SampleTensor("w", {rows, columns}, DType::f32, Fill::normal), DType::f32, 3);
}

std::string bytes_of_tensor(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.meta.bytes().number())};
}

void expect_same(const Tensor& codes, const Tensor& wanted) {
  EXPECT_EQ(bytes_of_tensor(codes), bytes_of_tensor(wanted)) << wanted.meta.text();
}

class WeightCodes : public ::testing::Test {
 protected:
  const std::shared_ptr<Context> context_ = make_context(Options());
  EagerEvaluator evaluator_{*context_, TokenRange{1, 512}};
  ThreadPool threads_{2};
};

TEST_F(WeightCodes, OfRowsAndGroupsAreThoseOfTheOpsForActivations) {
  const Tensor weight = some_weight(70, 128);
  const auto [rows, row_scales] = dynamic_per_token_scaled_fp8_quant(evaluator_.value(weight));
  const CodesAndScales own = quantize_blocks(weight, DType::f8e4m3, 1, 128, threads_);
  expect_same(own.codes, rows.tensor());
  expect_same(own.scales, row_scales.tensor());
  const auto [groups, group_scales] = per_token_group_quant_fp8(evaluator_.value(weight), {}, 32);
  const CodesAndScales own_groups = quantize_blocks(weight, DType::f8e4m3, 1, 32, threads_);
  expect_same(own_groups.codes, groups.tensor());
  expect_same(own_groups.scales, group_scales.tensor());
}

TEST_F(WeightCodes, OfNvfp4AreThoseOfTheOpForActivations) {
  Tensor weight = some_weight(33, 96);
  std::memset(weight.data(), 0, 16 * sizeof(float));  // a block of zeros
  const float global_scale = nvfp4_global_scale(largest_magnitude(weight, "w", threads_));
  const Tensor scale = Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &global_scale);
  const auto [codes, scales] = scaled_fp4_quant(evaluator_.value(weight), evaluator_.value(scale), false);
  const CodesAndScales own = quantize_nvfp4(weight, global_scale, threads_);
  EXPECT_EQ(own.codes.meta, Meta::tensor(DType::u8, {33, 48}));
  expect_same(own.codes, codes.tensor());
  expect_same(own.scales, scales.tensor());
}

TEST_F(WeightCodes, OfBlocksUseTheWholeRangeOfEachBlock) {
  const Tensor weight = some_weight(70, 100);  // the last blocks are short
  const CodesAndScales own = quantize_blocks(weight, DType::i8, 32, 64, threads_);
  ASSERT_EQ(own.scales.meta, Meta::tensor(DType::f32, {3, 2}));
  for (std::int64_t block = 0; block < 6; ++block) {
    const std::int64_t first = block / 2 * 32, begin = block % 2 * 64;
    int most = 0;
    for (std::int64_t row = first; row < std::min<std::int64_t>(70, first + 32); ++row)
      for (std::int64_t i = begin; i < std::min<std::int64_t>(100, begin + 64); ++i) {
        const int code = own.codes.as<std::int8_t>()[row * 100 + i];
        most = std::max(most, std::abs(code));
        const float scale = own.scales.as<float>()[block];
        EXPECT_LE(std::fabs(static_cast<float>(code) * scale - weight.as<float>()[row * 100 + i]), scale * 0.5001F);
      }
    EXPECT_EQ(most, 127) << block;
  }
}

TEST_F(WeightCodes, OfInt4AreTheNearestOfEachGroup) {
  constexpr std::int64_t kRows = 5, kColumns = 96, kGroup = 32;
  Tensor weight = some_weight(kRows, kColumns);
  std::memset(weight.data(), 0, kGroup * sizeof(float));  // a group of zeros
  const CodesAndScales own = quantize_int4(weight, kGroup, threads_);
  ASSERT_EQ(own.codes.meta, Meta::tensor(DType::i32, {kRows, kColumns / 8}));
  ASSERT_EQ(own.scales.meta, Meta::tensor(DType::bf16, {kRows, kColumns / kGroup}));
  for (std::int64_t group = 0; group < kRows * kColumns / kGroup; ++group) {
    const float scale = load_float(DType::bf16, own.scales.data(), group);
    float magnitude = 0;
    for (std::int64_t i = group * kGroup; i < (group + 1) * kGroup; ++i) {
      const float value = weight.as<float>()[i];
      magnitude = std::max(magnitude, std::fabs(value));
      const int code = static_cast<int>(own.codes.as<std::uint32_t>()[i / 8] >> i % 8 * 4 & 15) - 8;
      // The largest value may be 7.5 steps, and bf16 rounds a scale by 1/256.
      EXPECT_LE(std::fabs(static_cast<float>(code) * scale - value), scale * (code == 7 ? 0.54F : 0.5001F)) << i;
    }
    EXPECT_NEAR(scale, group == 0 ? 0x1p-7F : magnitude / 7.5F, magnitude / 7.5F / 256) << group;
  }
}

TEST_F(WeightCodes, OfNumbersThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Tensor weight = some_weight(5, 40);
    weight.as<float>()[77] = bad;
    EXPECT_THROW(largest_magnitude(weight, "model.w", threads_), UserError);
  }
}

}  // namespace weft::weight_codes_test
