// NVFP4 codes and scales of rows with special values, and of every bf16, against the definition in plain scalar code.

#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tensor/float4.h"
#include "tensor/float8.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft::cpu_quantize_fp4_test {

constexpr std::int64_t kGroup = 16;

struct Quantized {
  std::vector<std::uint8_t> codes;  // one an element
  std::vector<std::uint8_t> scales;
};

Quantized defined(const std::vector<float>& x, float global_scale) {
  const auto reciprocal = [](float value) { return value == 0 ? 0.0f : 1 / value; };
  Quantized result;
  for (std::size_t first = 0; first < x.size(); first += kGroup) {
    float magnitude = 0;
    for (std::size_t i = first; i < first + kGroup; ++i)
      if (!(std::abs(x[i]) <= magnitude) && !std::isnan(magnitude)) magnitude = std::abs(x[i]);
    float scale = magnitude * static_cast<float>(1.0 / 6) * global_scale;
    if (scale < -448) scale = -448;
    if (scale > 448) scale = 448;
    result.scales.push_back(f32_to_f8e4m3(scale));
    const float inverse = reciprocal(f8e4m3_to_f32(result.scales.back()) * reciprocal(global_scale));
    for (std::size_t i = first; i < first + kGroup; ++i) result.codes.push_back(f32_to_f4e2m1(x[i] * inverse + 0.0f));
  }
  return result;
}

std::vector<Tensor> quantized(RowKernels& kernels, const Tensor& x, float global_scale, bool swizzled) {
  const std::int64_t rows = x.meta.shape[0].number(), groups = x.meta.shape[1].number() / kGroup;
  const Shape scales = swizzled ? Shape{1, (rows + 127) / 128 * 128, (groups + 3) / 4 * 4} : Shape{rows, groups};
  return kernels.call("scaled_fp4_quant", {x, tensor_of(DType::f32, {1}, {global_scale})},
                      {{"swizzled_scales", swizzled}},
                      {Meta::tensor(DType::f4e2m1, x.meta.shape), Meta::tensor(DType::f8e4m3, scales)});
}

void expect_defined(RowKernels& kernels, const Tensor& x, float global_scale) {
  const Quantized wanted = defined(values_of(x), global_scale);
  const std::vector<Tensor> came = quantized(kernels, x, global_scale, false);
  for (std::size_t i = 0; i < wanted.scales.size(); ++i)
    ASSERT_EQ(wanted.scales[i], came[1].as<std::uint8_t>()[i]) << "scale " << i;
  for (std::size_t i = 0; i < wanted.codes.size(); ++i)
    ASSERT_EQ(wanted.codes[i], load_nibble(came[0].as<std::uint8_t>(), static_cast<std::int64_t>(i)))
        << "code " << i << " of " << values_of(x)[i];
}

// Runs check(kernels) on every instruction set of this host.
template <class Check>
void for_each_ceiling(Check check) {
  for (const std::string& ceiling : vector_features_to_try()) {
    SCOPED_TRACE(ceiling);
    RowKernels kernels(ceiling, 2);
    check(kernels);
  }
}

TEST(CpuQuantizeFp4, RowsOfSpecialValuesGiveTheCodesAndScalesOfTheMeaning) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_each_ceiling([&](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t columns : {16, 112, 1024, 1040, 4000}) {
        const Tensor x =
            with_row_padding(tensor_of(dtype, {9, columns}, rows_with_specials(9, columns, 4)), columns % 5);
        for (float global_scale : {1.0f, 896.0f, -3.0f, 0.0f, 1e-42f, 3e38f, 1e-30f, kInfinity, std::nanf("")}) {
          SCOPED_TRACE(fmt::format("{}[9, {}], {}", dtype_text(dtype), columns, global_scale));
          expect_defined(kernels, x, global_scale);
        }
      }
    }
  });
}

TEST(CpuQuantizeFp4, EveryBfloatHasTheCodeOfItsMeaningByAnyScale) {
  for_each_ceiling([](RowKernels& kernels) {
    Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {1024, 64}));
    for (int i = 0; i < 65536; ++i) x.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    for (float global_scale : {1.0f, 0.37f, 1e-20f}) expect_defined(kernels, x, global_scale);
  });
}

// Groups whose largest is 6 times a scale have all codes, and the values between two of them.
TEST(CpuQuantizeFp4, ValuesBetweenCodesRoundToTheEvenOne) {
  std::vector<float> x;
  for (int i = 0; i < 64 * 15; ++i) {
    if (i % 15 == 0) x.push_back(6);
    const float between = static_cast<float>(i) / (64 * 15) * 6;
    x.push_back((i % 2 == 0 ? 1.0f : -1.0f) * std::round(between * 16) / 16);
  }
  for_each_ceiling([&](RowKernels& kernels) {
    for (DType dtype : kFloatTypes)
      for (float factor : {1.0f, 0.75f}) expect_defined(kernels, tensor_of(dtype, {4, 256}, x), factor);
  });
}

TEST(CpuQuantizeFp4, SwizzledScalesAreThePlainOnesInTilesAndZeroBetween) {
  for_each_ceiling([](RowKernels& kernels) {
    for (std::int64_t rows : {1, 128, 200}) {
      for (std::int64_t groups : {3, 8}) {
        SCOPED_TRACE(fmt::format("{} rows of {} groups", rows, groups));
        const Tensor x = tensor_of(DType::f32, {rows, groups * kGroup},
                                   normal_values(static_cast<std::size_t>(rows * groups * kGroup), 7));
        const std::vector<Tensor> plain = quantized(kernels, x, 100, false), tiles = quantized(kernels, x, 100, true);
        for (std::int64_t i = 0; i < rows * groups * kGroup / 2; ++i)
          ASSERT_EQ(plain[0].as<std::uint8_t>()[i], tiles[0].as<std::uint8_t>()[i]);
        const std::int64_t all_rows = tiles[1].meta.shape[1].number(), all_groups = tiles[1].meta.shape[2].number();
        for (std::int64_t row = 0; row < all_rows; ++row) {
          for (std::int64_t group = 0; group < all_groups; ++group) {
            // [row tile][group tile][row % 32][row / 32 % 4][group % 4]
            const std::int64_t tile = row / 128 * (all_groups / 4) + group / 4;
            const std::int64_t place = ((tile * 32 + row % 32) * 4 + row / 32 % 4) * 4 + group % 4;
            const bool inside = row < rows && group < groups;
            ASSERT_EQ(inside ? plain[1].as<std::uint8_t>()[row * groups + group] : 0,
                      tiles[1].as<std::uint8_t>()[place])
                << row << ", " << group;
          }
        }
      }
    }
  });
}

}  // namespace weft::cpu_quantize_fp4_test
