// The pieces of linear layers over byte codes, on every instruction set that the host has and on sixteen lanes.

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "compiler/run/sample_call.h"
#include "kernels/cpu/lib/scaled_linear_kernels.h"
#include "ops/linear_fp8_block.h"
#include "tensor/bfloat16.h"
#include "tensor/float4.h"
#include "tensor/float8.h"
#include "tests/kernels/cpu_rows_support.h"
#include "tests/kernels/emulated_linear.h"
#include "tests/kernels/emulated_rows.h"
#include "tests/test_context.h"

namespace weft::cpu::cpu_scaled_linear_test {

struct Variant {
  const char* name;
  const ScaledLinearKernels* kernels;
};

std::vector<Variant> variants() {
  std::vector<Variant> all = {{"baseline", &scaled_linear_kernels_baseline},
                              {"sixteen lanes", &scaled_linear_kernels_emulated}};
  const CpuFeatures host = describe_cpu("", 1).host;
  if (host >= CpuFeatures::avx2) all.push_back({"avx2", &scaled_linear_kernels_avx2});
  if (host >= CpuFeatures::avx512) all.push_back({"avx512", &scaled_linear_kernels_avx512});
  return all;
}

TEST(CpuScaledLinear, WidensEveryCodeAtEveryPlaceOfARow) {
  for (const Variant& variant : variants())
    for (std::int64_t count = 1; count <= 37; ++count) {
      SCOPED_TRACE(testing::Message() << variant.name << ", " << count << " codes");
      for (int first = 0; first < 256; first += 5) {
        std::vector<std::uint8_t> codes;
        for (int i = 0; i < count; ++i) codes.push_back(static_cast<std::uint8_t>(first + i));
        for (const auto& [code, value_of] :
             {std::pair(SmallCode::f8e4m3, &f8e4m3_to_f32), std::pair(SmallCode::f8e4m3fnuz, &f8e4m3fnuz_to_f32)}) {
          std::vector<float> wide(static_cast<std::size_t>(count) + 1, -7.0f);
          variant.kernels->widen[static_cast<int>(code)](codes.data(), 0.375f, wide.data(), count);
          for (std::size_t i = 0; i < codes.size(); ++i) {
            const float wanted = value_of(codes[i]) * 0.375f;
            if (std::isnan(wanted)) {
              EXPECT_TRUE(std::isnan(wide[i]));
            } else {
              EXPECT_EQ(std::signbit(wide[i]), std::signbit(wanted));
              EXPECT_EQ(wide[i], wanted) << int{codes[i]};
            }
          }
          EXPECT_EQ(wide.back(), -7.0f);
        }
      }
    }
}

// The largest codes are among them; the byte after the last weight is not read (address sanitizer).
TEST(CpuScaledLinear, MultipliesIntegersExactlyForAnyRowsColumnsAndDepth) {
  const auto weight_at = [](std::int64_t i) {
    return static_cast<std::int8_t>(i % 7 == 0 ? -128 : i * 31 % 256 - 128);
  };
  const auto x_at = [](std::int64_t i) { return static_cast<std::int8_t>(i % 5 == 0 ? -128 : i * 57 % 256 - 128); };
  for (const Variant& variant : variants())
    for (const std::int64_t depth : {1, 15, 16, 31, 33, 100})
      for (std::int64_t rows = 1; rows <= 7; ++rows)
        for (int columns = 1; columns <= kScaledColumns; columns += 3) {
          SCOPED_TRACE(testing::Message() << variant.name << ", [" << rows << ", " << depth << "] x " << columns);
          const std::int64_t stride = (depth + kIntegerPadding - 1) / kIntegerPadding * kIntegerPadding;
          std::vector<std::int8_t> weight;
          for (std::int64_t i = 0; i < columns * depth; ++i) weight.push_back(weight_at(i));
          std::vector<std::int16_t> x(static_cast<std::size_t>(rows * stride), 0);
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t k = 0; k < depth; ++k) x[static_cast<std::size_t>(r * stride + k)] = x_at(r * depth + k);
          std::vector<std::int32_t> sums(static_cast<std::size_t>(rows * kScaledColumns), 9);
          variant.kernels->multiply_integers({.weight = weight.data(),
                                              .weight_stride = depth,
                                              .columns = columns,
                                              .x = x.data(),
                                              .x_stride = stride,
                                              .depth = depth,
                                              .rows = rows,
                                              .sums = sums.data()});
          for (std::int64_t r = 0; r < rows; ++r)
            for (int c = 0; c < kScaledColumns; ++c) {
              std::int32_t wanted = c < columns ? 0 : 9;
              for (std::int64_t k = 0; c < columns && k < depth; ++k)
                wanted += weight_at(c * depth + k) * x_at(r * depth + k);
              EXPECT_EQ(sums[static_cast<std::size_t>(r * kScaledColumns + c)], wanted) << r << ", " << c;
            }
        }
}

TEST(CpuScaledLinear, WidensPairsOfFourBitCodes) {
  std::vector<std::uint8_t> pairs(256);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = static_cast<std::uint8_t>(i);
  for (const Variant& variant : variants())
    for (const std::int64_t count : {16, 48, 512}) {
      SCOPED_TRACE(testing::Message() << variant.name << ", " << count << " codes");
      std::vector<float> wide(static_cast<std::size_t>(count) + 1, -7.0f);
      variant.kernels->widen[static_cast<int>(SmallCode::f4e2m1)](pairs.data(), 0.375f, wide.data(), count);
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        EXPECT_EQ(wide[i], f4e2m1_to_f32(pairs[i / 2] >> (i % 2 * 4) & 15) * 0.375f) << i;
      EXPECT_EQ(wide.back(), -7.0f);
    }
}

TEST(CpuScaledLinear, AddsProductsOfAnyNumberOfRows) {
  constexpr std::int64_t kDepth = 48;
  const auto weight_at = [](std::int64_t column, std::int64_t k) {
    return static_cast<float>((column * 7 + k) % 9 - 4);
  };
  const auto x_at = [](std::int64_t row, std::int64_t k) { return static_cast<float>((row * 5 + k * 3) % 11 - 5); };
  std::vector<float> weight, x;
  for (std::int64_t c = 0; c < kScaledTileColumns; ++c)
    for (std::int64_t k = 0; k < kDepth; ++k) weight.push_back(weight_at(c, k));
  for (std::int64_t r = 0; r < 8; ++r)
    for (std::int64_t k = 0; k < kDepth; ++k) x.push_back(x_at(r, k));
  for (const Variant& variant : variants())
    for (std::int64_t rows = 0; rows <= 8; ++rows) {
      SCOPED_TRACE(testing::Message() << variant.name << ", " << rows << " rows");
      std::vector<float> sums(9 * kScaledColumns, 0.5f);
      variant.kernels->multiply({.weight = weight.data(),
                                 .weight_stride = kDepth,
                                 .x = x.data(),
                                 .x_stride = kDepth,
                                 .depth = kDepth,
                                 .rows = rows,
                                 .sums = sums.data()});
      for (std::int64_t r = 0; r < 9; ++r)
        for (std::int64_t c = 0; c < kScaledColumns; ++c) {
          float wanted = 0.5f;
          for (std::int64_t k = 0; r < rows && c < kScaledTileColumns && k < kDepth; ++k)
            wanted += weight_at(c, k) * x_at(r, k);
          EXPECT_EQ(sums[static_cast<std::size_t>(r * kScaledColumns + c)], wanted);
        }
    }
}

TEST(CpuScaledLinear, FinishesAsManyColumnsAsThereAre) {
  std::vector<float> sums(2 * kScaledColumns), column_scale, bias;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i) - 9;
  for (int c = 0; c < kScaledColumns; ++c) {
    column_scale.push_back(0.5f + static_cast<float>(c));
    bias.push_back(static_cast<float>(c % 3));
  }
  const float row_scale[] = {2.0f, 0.25f};
  for (const Variant& variant : variants())
    for (int columns = 1; columns <= kScaledColumns; ++columns) {
      SCOPED_TRACE(testing::Message() << variant.name << ", " << columns << " columns");
      std::vector<float> output(2 * 20, -7.0f);
      variant.kernels->finish[static_cast<int>(Element::f32)]({.sums = sums.data(),
                                                               .rows = 2,
                                                               .columns = columns,
                                                               .column_scale = column_scale.data(),
                                                               .row_scale = row_scale,
                                                               .row_scale_stride = 1,
                                                               .bias = bias.data(),
                                                               .output = output.data(),
                                                               .output_stride = 20});
      for (std::size_t r = 0; r < 2; ++r)
        for (std::size_t c = 0; c < 20; ++c)
          EXPECT_EQ(output[r * 20 + c], c < static_cast<std::size_t>(columns)
                                            ? sums[r * kScaledColumns + c] * column_scale[c] * row_scale[r] + bias[c]
                                            : -7.0f);
    }
}

// f32 sums of 1536 products, compared with f64 sums of the decoded numbers.
TEST(CpuScaledLinear, SumsBeyondOneTileAndOneBlockOfRows) {
  constexpr std::int64_t kRows = 70, kColumns = 100, kDepth = 1536, kBlock = 64;
  const auto byte_at = [](std::int64_t i) { return static_cast<std::uint8_t>((i * 37 + i / 251) % 256 & 0xf7); };
  const auto scale_at = [](std::int64_t i) { return 0.001f + 0.0003f * static_cast<float>(i % 13); };
  const auto codes = [&](std::int64_t rows) {
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f8e4m3, {rows, kDepth}));
    for (std::int64_t i = 0; i < rows * kDepth; ++i) tensor.as<std::uint8_t>()[i] = byte_at(i);
    return tensor;
  };
  const auto scales = [&](std::int64_t rows) {
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {rows, kDepth / kBlock}));
    for (std::int64_t i = 0; i < rows * (kDepth / kBlock); ++i) tensor.as<float>()[i] = scale_at(i);
    return tensor;
  };
  const Tensor x = codes(kRows), weight = codes(kColumns), x_scale = scales(kRows), weight_scale = scales(2);
  for (const std::string& features : cpu_features_to_try()) {
    SCOPED_TRACE(features);
    const auto context = test_context(features);
    EagerEvaluator eager(*context, {1, kRows});
    const Value result = linear_fp8_block(eager.value(x), eager.value(x_scale), eager.value(weight),
                                          eager.value(weight_scale), {}, {kBlock, kBlock});
    for (std::int64_t r = 0; r < kRows; r += 3)
      for (std::int64_t c = 0; c < kColumns; ++c) {
        double wanted = 0, size = 0;
        for (std::int64_t k = 0; k < kDepth; ++k) {
          const double product = double{f8e4m3_to_f32(x.as<std::uint8_t>()[r * kDepth + k])} *
                                 x_scale.as<float>()[r * (kDepth / kBlock) + k / kBlock] *
                                 f8e4m3_to_f32(weight.as<std::uint8_t>()[c * kDepth + k]) *
                                 weight_scale.as<float>()[c / kBlock * (kDepth / kBlock) + k / kBlock];
          wanted += product;
          size += std::abs(product);
        }
        EXPECT_NEAR(result.tensor().as<float>()[r * kColumns + c], wanted, 1e-6 * size) << r << ", " << c;
      }
  }
}

// More than one tile and one block of rows, and columns that fill no tile.
TEST(CpuScaledLinear, RoundedOperandsOfNvfp4GiveTheBitsOfTheMeaning) {
  constexpr std::int64_t kRows = 67, kColumns = 37, kDepth = 2064;
  const auto codes = [&](std::int64_t rows, int turn) {
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f4e2m1, {rows, kDepth}));
    for (std::int64_t i = 0; i < rows * kDepth / 2; ++i)
      tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>((i * turn + i / 251) % 256);
    return tensor;
  };
  const auto scales = [&](std::int64_t rows) {
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f8e4m3, {rows, kDepth / 16}));
    for (std::int64_t i = 0; i < rows * (kDepth / 16); ++i)
      tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(0x20 + i * 7 % 60);
    return tensor;
  };
  const auto one = [](float value) { return tensor_of(DType::f32, {1}, {value}); };
  std::vector<float> biases;
  for (std::int64_t c = 0; c < kColumns; ++c) biases.push_back(static_cast<float>(c % 5) - 1.7f);
  const std::vector<Tensor> tensors = {codes(kRows, 37),
                                       scales(kRows),
                                       one(137.3f),
                                       codes(kColumns, 101),
                                       scales(kColumns),
                                       one(0.0071f),
                                       tensor_of(DType::f32, {kColumns}, biases)};
  for (const std::string& features : cpu_features_to_try()) {
    const auto context = test_context(features);
    EagerEvaluator eager(*context, {1, kRows});
    Interpreter interpreter(*context);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(features + ", " + std::string(dtype_text(dtype)));
      const NamedAttributes attributes = {
          {"swizzled_scales", false}, {"intermediate", EnumWord{"output_dtype"}}, {"dtype", dtype}};
      const auto result = [&](Evaluator& home) {
        return call("linear_nvfp4", values_of(home, tensors), attributes, false, &home)[0].tensor();
      };
      const std::vector<std::optional<Meta>> operands = metas_of(tensors);
      const std::vector<Meta> results = {Meta::tensor(dtype, {kRows, kColumns})};
      const Attributes all = complete_attributes(context->ops.at("linear_nvfp4").schema, attributes);
      EXPECT_TRUE(context->kernels.find("linear_nvfp4", "cpu")->supports({operands, results, all, {1, kRows}}));
      EXPECT_EQ(difference(result(interpreter), result(eager), {}, true), "");
    }
  }
}

TEST(CpuScaledLinear, TilesWidenEveryCodeExactly) {
  std::vector<std::uint8_t> codes;
  for (int i = 0; i < 300; ++i) codes.push_back(static_cast<std::uint8_t>(i));
  std::vector<const ScaledTileKernels*> all = {&kScaledTilesEmulated};
  if (describe_cpu("", 1).host >= CpuFeatures::amx) all.push_back(&scaled_tile_kernels_amx);
  for (const ScaledTileKernels* kernels : all)
    for (const auto& [code, value_of] :
         {std::pair(SmallCode::f8e4m3, &f8e4m3_to_f32), std::pair(SmallCode::f8e4m3fnuz, &f8e4m3fnuz_to_f32)}) {
      std::vector<std::uint16_t> wide(321, 7);
      kernels->widen[static_cast<int>(code)](codes.data(), 300, wide.data());
      for (std::size_t i = 0; i < 300; ++i) {
        const float wanted = value_of(codes[i]), came = bf16_to_f32(wide[i]);
        EXPECT_TRUE(std::isnan(wanted) ? std::isnan(came) : came == wanted) << int{codes[i]} << ": " << came;
      }
      for (std::size_t i = 300; i < 320; ++i) EXPECT_EQ(wide[i], 0);
      EXPECT_EQ(wide[320], 7);
    }
}

// Values of the test of tiles: small integers, exact in every type and sum.
int weight_value(std::int64_t i) { return static_cast<int>(i * 31 % 17 - 8); }
int row_value(std::int64_t i) { return static_cast<int>(i * 57 % 13 - 6); }

template <class Element, class ToElement>
void expect_exact_tiles(const ScaledTileKernels& kernels, TileCode code, std::int64_t rows, int columns,
                        std::int64_t steps, bool scaled, ToElement to_element) {
  const std::int64_t depth = steps * kScaledStepBytes / static_cast<std::int64_t>(sizeof(Element));
  const std::int64_t blocks = (rows + kScaledTileRows - 1) / kScaledTileRows;
  constexpr std::int64_t per_word = 4 / sizeof(Element);
  std::vector<Element> weight(static_cast<std::size_t>(columns * depth)),
      x(static_cast<std::size_t>(blocks * 16 * depth));
  for (std::int64_t i = 0; i < columns * depth; ++i) weight[static_cast<std::size_t>(i)] = to_element(weight_value(i));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < depth; ++k)
      x[static_cast<std::size_t>(((r / 16 * depth + k / per_word * per_word) * 16) + r % 16 * per_word +
                                 k % per_word)] = to_element(row_value(r * depth + k));
  std::vector<float> sums(static_cast<std::size_t>(blocks * 16 * kScaledColumns), 3.0f), row_scale, column_scale;
  for (std::int64_t r = 0; r < rows; ++r) row_scale.push_back(static_cast<float>(1 << r % 3));
  for (int c = 0; c < kScaledColumns; ++c) column_scale.push_back(static_cast<float>(1 + c % 4));
  kernels.multiply({.code = code,
                    .weight = reinterpret_cast<const std::byte*>(weight.data()),
                    .weight_stride = depth * static_cast<std::int64_t>(sizeof(Element)),
                    .columns = columns,
                    .x = reinterpret_cast<const std::byte*>(x.data()),
                    .x_steps = steps,
                    .steps = steps,
                    .rows = rows,
                    .column_scale = scaled ? column_scale.data() : nullptr,
                    .row_scale = scaled ? row_scale.data() : nullptr,
                    .row_scale_stride = 1,
                    .sums = sums.data()});
  for (std::int64_t r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += weight_value(c * depth + k) * row_value(r * depth + k);
      const float factor =
          scaled ? row_scale[static_cast<std::size_t>(r)] * column_scale[static_cast<std::size_t>(c)] : 1;
      ASSERT_EQ(sums[static_cast<std::size_t>(r * kScaledColumns + c)], 3.0f + static_cast<float>(sum) * factor)
          << r << ", " << c;
    }
}

TEST(CpuScaledLinear, TilesMultiplyExactlyForAnyRowsAndColumns) {
  std::vector<std::pair<const char*, const ScaledTileKernels*>> all = {{"emulated", &kScaledTilesEmulated}};
  if (describe_cpu("", 1).host >= CpuFeatures::amx) all.push_back({"amx", &scaled_tile_kernels_amx});
  for (const auto& [name, kernels] : all)
    for (const std::int64_t rows : {1, 15, 16, 33, 50, 70})
      for (const int columns : {1, 7, 16})
        for (const std::int64_t steps : {1, 3})
          for (const bool scaled : {false, true}) {
            SCOPED_TRACE(testing::Message() << name << ", " << rows << " rows, " << columns << " columns");
            expect_exact_tiles<std::int8_t>(*kernels, TileCode::i8, rows, columns, steps, scaled,
                                            [](int value) { return static_cast<std::int8_t>(value); });
            expect_exact_tiles<std::uint16_t>(*kernels, TileCode::bf16, rows, columns, steps, scaled,
                                              [](int value) { return f32_to_bf16(static_cast<float>(value)); });
          }
}

}  // namespace weft::cpu::cpu_scaled_linear_test
