// Codes of f8e4m3fnuz compared with the definition in plain scalar code, for every bf16 and for floats around every
// bound between two codes.

#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tensor/convert.h"
#include "tensor/float8.h"
#include "tests/kernels/cpu_quantized_rows_support.h"

namespace weft::cpu_quantize_fnuz_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = 224;

// As clamp and cast do: a NaN passes.
std::uint8_t code_of(float scaled) {
  const float held = scaled < -kLargest ? -kLargest : scaled > kLargest ? kLargest : scaled;
  return f32_to_f8e4m3fnuz(held);
}

Tensor every_bfloat() {
  Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {16, 4096}));
  for (int i = 0; i < 65536; ++i) x.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
  return x;
}

// Of both signs: zeros, denormals, infinities, NaN, values beyond the codes, each value of a code, the middle of it and
// the next, and the floats next to those.
Tensor floats_around_codes() {
  std::vector<float> values = {0,     1e-45f, 1e-38f,    0x1p-11f, 0x1.000002p-11f, 0x1.fffffep-12f,
                               1e30f, 3e38f,  kInfinity, NAN};
  for (int code = 1; code < 0x80; ++code) {
    const float value = f8e4m3fnuz_to_f32(static_cast<std::uint8_t>(code));
    const float below = f8e4m3fnuz_to_f32(static_cast<std::uint8_t>(code - 1));
    for (const float at : {value, (value + below) / 2})
      for (const float near : {at, std::nextafter(at, kInfinity), std::nextafter(at, 0.0f)}) values.push_back(near);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return tensor_of(DType::f32, {1, static_cast<std::int64_t>(values.size())}, values);
}

Tensor call_static(RowKernels& kernels, const Tensor& x, float scale) {
  return kernels.call("static_scaled_fp8_quant", {x, tensor_of(DType::f32, {1}, {scale})},
                      {{"group_shape", Attribute()}, {"dtype", DType::f8e4m3fnuz}},
                      {Meta::tensor(DType::f8e4m3fnuz, x.meta.shape)})[0];
}

TEST(CpuQuantizeFnuz, EveryBfloatAndTheFloatsAroundCodesHaveTheCodesOfTheMeaningUnderAnyScale) {
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const Tensor& x : {every_bfloat(), floats_around_codes()}) {
      const std::vector<float> values = values_of(x);
      for (const float scale : {1.0f, 0.5f, 0.37f, 3e-3f, 1e-30f, 1e-42f, 1e30f, 0.0f, kInfinity, NAN}) {
        SCOPED_TRACE(fmt::format("{}, {} by {}", ceiling, x.meta.text(), scale));
        const Tensor codes = call_static(kernels, x, scale);
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(code_of(values[i] * (1.0f / scale)), codes.as<std::uint8_t>()[i]) << values[i];
      }
    }
  }
}

Attributes fnuz_groups(std::int64_t group, const char* scale_by) {
  Attributes attributes = fp8_groups(group);
  set_all(attributes, {{"dtype", DType::f8e4m3fnuz}, {"scale_by", EnumWord{scale_by}}});
  return attributes;
}

// 128 rows whose largest value is another, of every bf16 below it.
TEST(CpuQuantizeFnuz, EveryQuotientOfABfloatGivesTheCodeOfTheDivision) {
  constexpr std::int64_t kRows = 128, kColumns = 4096;
  Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {kRows, kColumns}));
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kColumns; ++i)
      x.as<std::uint16_t>()[row * kColumns + i] = i == 0 ? static_cast<std::uint16_t>(0x4300 + row)
                                                         : static_cast<std::uint16_t>((i & 1) << 15 | (0x4300 - i / 2));
  const std::vector<float> values = values_of(x);
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const std::int64_t group : {32, 100, 4096})
      for (const char* by : {"division", "reciprocal"}) {
        SCOPED_TRACE(fmt::format("{}, groups of {} by {}", ceiling, group, by));
        const std::int64_t groups = (kColumns + group - 1) / group;
        const auto came = kernels.call(
            "per_token_group_quant_fp8", {x, std::nullopt}, fnuz_groups(group, by),
            {Meta::tensor(DType::f8e4m3fnuz, {kRows, kColumns}), Meta::tensor(DType::f32, {kRows, groups})});
        for (std::int64_t row = 0; row < kRows; ++row)
          for (std::int64_t g = 0; g < groups; ++g) {
            const std::int64_t first = row * kColumns + g * group;
            const std::int64_t end = std::min(first + group, (row + 1) * kColumns);
            float magnitude = 1e-10f;
            for (std::int64_t i = first; i < end; ++i)
              magnitude = std::max(magnitude, std::abs(values[static_cast<std::size_t>(i)]));
            const bool divides = std::string(by) == "division";
            const float scale = divides ? magnitude / kLargest : magnitude * static_cast<float>(1.0 / kLargest);
            ASSERT_EQ(scale, came[1].as<float>()[row * groups + g]);
            for (std::int64_t i = first; i < end; ++i)
              ASSERT_EQ(code_of(values[static_cast<std::size_t>(i)] / scale), came[0].as<std::uint8_t>()[i])
                  << values[static_cast<std::size_t>(i)] << " of row " << row;
          }
      }
  }
}

constexpr std::int64_t kRows = 9;

std::vector<Epilogue> fnuz_epilogues(std::int64_t columns) {
  const Meta codes = Meta::tensor(DType::f8e4m3fnuz, {kRows, columns}), rows = Meta::tensor(DType::f32, {kRows, 1});
  std::vector<Epilogue> epilogues = {{"static_scaled_fp8_quant",
                                      {{"group_shape", Attribute()}, {"dtype", DType::f8e4m3fnuz}},
                                      {codes},
                                      tensor_of(DType::f32, {1}, {0.02f})}};
  for (const std::int64_t group : {32, 50})
    epilogues.push_back({"per_token_group_quant_fp8",
                         fnuz_groups(group, "reciprocal"),
                         {codes, Meta::tensor(DType::f32, {kRows, (columns + group - 1) / group})}});
  for (const char* by : {"division", "reciprocal"})
    epilogues.push_back(
        {"dynamic_per_token_scaled_fp8_quant",
         {{"minimum_scale", Attribute()},
          {"scale_by", EnumWord{by}},
          {"codes_by", EnumWord{by}},
          {"dtype", DType::f8e4m3fnuz}},
         {codes, rows},
         std::string(by) == "division" ? std::nullopt : std::optional(tensor_of(DType::f32, {1}, {1.5f}))});
  return epilogues;
}

// Special values among them; a row's least scale is that of the format.
TEST(CpuQuantizeFnuz, RowsHaveTheScalesAndCodesOfTheMeaning) {
  constexpr std::int64_t kColumns = 200;
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const DType dtype : kFloatTypes)
      for (const Epilogue& epilogue : fnuz_epilogues(kColumns)) {
        if (epilogue.op != "dynamic_per_token_scaled_fp8_quant") continue;
        SCOPED_TRACE(fmt::format("{}, {}", ceiling, dtype_text(dtype)));
        const Tensor x = tensor_of(dtype, {kRows, kColumns}, rows_with_specials(kRows, kColumns, 4));
        const std::vector<float> values = values_of(x);
        const auto came = quantized(kernels, epilogue, x);
        for (std::int64_t row = 0; row < kRows; ++row) {
          const float* from = values.data() + row * kColumns;
          float magnitude = 0;
          for (std::int64_t i = 0; i < kColumns; ++i)
            magnitude = std::isnan(magnitude) || std::abs(from[i]) <= magnitude ? magnitude : std::abs(from[i]);
          if (epilogue.tensor && magnitude > 1.5f) magnitude = 1.5f;
          float scale = epilogue.tensor ? magnitude * static_cast<float>(1.0 / kLargest) : magnitude / kLargest;
          constexpr float kLeast = 1.0 / (kLargest * 512);
          scale = scale < kLeast ? kLeast : scale;
          const float given = came[1].as<float>()[row];
          ASSERT_TRUE(scale == given || (std::isnan(scale) && std::isnan(given))) << "row " << row;
          for (std::int64_t i = 0; i < kColumns; ++i) {
            const float scaled = epilogue.tensor ? from[i] * (1.0f / scale) : from[i] / scale;
            ASSERT_EQ(code_of(scaled), came[0].as<std::uint8_t>()[row * kColumns + i])
                << "row " << row << ", " << from[i] << " by " << scale;
          }
        }
      }
  }
}

TEST(CpuQuantizeFnuz, EndsOtherOpsWithTheBitsOfTheTwo) {
  constexpr std::int64_t kColumns = 96;
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const DType dtype : kFloatTypes) {
      const Tensor wide = tensor_of(dtype, {kRows, 2 * kColumns}, rows_with_specials(kRows, 2 * kColumns, 3));
      const Tensor x = tensor_of(dtype, {kRows, kColumns}, rows_with_specials(kRows, kColumns, 3));
      const Tensor weight = tensor_of(dtype, {kColumns}, normal_values(kColumns, 5));
      const Attributes norm{{"epsilon", 1e-5}, {"variance_size", Attribute()}};
      const Tensor product = kernels.call("silu_and_mul", {wide}, {}, {x.meta})[0];
      const Tensor normalized = kernels.call("rms_norm", {x, weight}, norm, {x.meta})[0];
      for (const Epilogue& epilogue : fnuz_epilogues(kColumns)) {
        SCOPED_TRACE(fmt::format("{}, {}, {}", ceiling, dtype_text(dtype), epilogue.op));
        expect_same_results(quantized(kernels, epilogue, product), fused(kernels, "silu_and_mul", epilogue, {wide},
                                                                         {{"intermediate", EnumWord{"input_dtype"}}}));
        expect_same_results(quantized(kernels, epilogue, normalized),
                            fused(kernels, "rms_norm", epilogue, {x, weight}, norm));
      }
    }
  }
}

}  // namespace weft::cpu_quantize_fnuz_test
