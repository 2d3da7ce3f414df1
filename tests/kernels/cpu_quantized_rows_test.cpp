// Kernels of a row-wise op with its quantization: codes and scales are those of two separate kernels, which other tests
// compare with their meanings.

#include <cmath>
#include <cstring>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tensor/float8.h"
#include "tensor/reference_math.h"
#include "tests/kernels/cpu_quantized_rows_support.h"

namespace weft::cpu_quantized_rows_test {

constexpr std::int64_t kRows = 9;
// Groups that fit registers or vectors, that do not, and some longer than a block.
constexpr std::int64_t kGroups[] = {1, 7, 32, 64, 100, 1024, 2048};

Tensor positive_scales(Shape shape) {
  const auto count = static_cast<std::size_t>(element_count(shape).number());
  std::vector<float> values = normal_values(count, 8);
  for (float& value : values) value = std::abs(value) + 1e-3f;
  return tensor_of(DType::f32, std::move(shape), values);
}

// `groups` groups and a rest of `columns`. With few groups those of groups; else those of rows and of given scales.
std::vector<Epilogue> epilogues_of(std::int64_t columns, std::int64_t group, std::int64_t groups) {
  const Meta int8 = Meta::tensor(DType::i8, {kRows, columns}), fp8 = Meta::tensor(DType::f8e4m3, {kRows, columns});
  const Meta row_scales = Meta::tensor(DType::f32, {kRows, 1});
  const std::int64_t scales = (columns + group - 1) / group;
  const Meta group_scales = Meta::tensor(DType::f32, {kRows, scales});
  std::vector<Epilogue> epilogues;
  if (columns % group == 0) {
    for (const char* rounding : {"nearest", "toward_zero"})
      epilogues.push_back({"per_token_group_quant_int8",
                           {{"group_size", group}, {"rounding", EnumWord{rounding}}},
                           {int8, group_scales}});
    // A least scale that some groups reach and some do not.
    epilogues.push_back({"per_token_group_quant_int8",
                         {{"group_size", group}, {"minimum_scale", 0.012}, {"column_major_scales", true}},
                         {int8, Meta::strided(DType::f32, {kRows, scales}, {1, kRows})}});
    epilogues.push_back({"static_scaled_fp8_quant",
                         {{"group_shape", Attribute()}, {"dtype", DType::f8e4m3}},
                         {fp8},
                         positive_scales({1, scales})});
  }
  epilogues.push_back({"per_token_group_quant_fp8", fp8_groups(group), {fp8, group_scales}});
  Attributes rounded_up = fp8_groups(group);
  set_all(rounded_up, {{"use_ue8m0", true}, {"column_major_scales", true}, {"scale_by", EnumWord{"reciprocal"}}});
  epilogues.push_back(
      {"per_token_group_quant_fp8", rounded_up, {fp8, Meta::strided(DType::f32, {kRows, scales}, {1, kRows})}});
  // Bounds that some groups reach and some do not.
  for (const auto& [of, bound] : {std::pair{"magnitude", 1.5f}, {"scale", 0.004f}}) {
    Attributes held = fp8_groups(group);
    set_all(held, {{"scale_ub_of", EnumWord{of}}});
    epilogues.push_back({"per_token_group_quant_fp8", held, {fp8, group_scales}, tensor_of(DType::f32, {1}, {bound})});
  }
  if (columns % 16 == 0 && group > 7) {
    for (bool swizzled : {false, true})
      epilogues.push_back({"scaled_fp4_quant",
                           {{"swizzled_scales", swizzled}},
                           {Meta::tensor(DType::f4e2m1, {kRows, columns}),
                            Meta::tensor(DType::f8e4m3, swizzled ? Shape{1, 128, (columns + 63) / 64 * 4}
                                                                 : Shape{kRows, columns / 16})},
                           tensor_of(DType::f32, {1}, {80.0f})});
  }
  if (groups > 1) return epilogues;
  epilogues.push_back({"dynamic_per_token_scaled_int8_quant", {}, {int8, row_scales}});
  for (const char* by : {"division", "reciprocal"}) {
    Epilogue epilogue{"dynamic_per_token_scaled_fp8_quant",
                      {{"minimum_scale", Attribute()},
                       {"scale_by", EnumWord{by}},
                       {"codes_by", EnumWord{by}},
                       {"dtype", DType::f8e4m3}},
                      {fp8, row_scales}};
    if (std::string(by) == "reciprocal") epilogue.tensor = tensor_of(DType::f32, {1}, {1.5f});
    epilogues.push_back(epilogue);
  }
  for (Shape shape : {Shape{1}, Shape{kRows, 1}})
    epilogues.push_back({"static_scaled_fp8_quant",
                         {{"group_shape", Attribute()}, {"dtype", DType::f8e4m3}},
                         {fp8},
                         positive_scales(shape)});
  epilogues.push_back({"static_scaled_fp8_quant",
                       {{"group_shape", Attribute::shape({1, -1})}, {"dtype", DType::f8e4m3}},
                       {fp8},
                       positive_scales({kRows})});
  return epilogues;
}

// Runs check(kernels, dtype, columns, epilogue) for every epilogue on every instruction set of this host.
template <class Check>
void for_each_case(Check check) {
  for (const std::string& ceiling : vector_features_to_try()) {
    for (int threads : {1, 2}) {
      if (threads == 2 && vector_features_to_try().size() > 1 && ceiling == "baseline") continue;  // the slowest
      RowKernels kernels(ceiling, threads);
      for (DType dtype : kFloatTypes) {
        for (std::int64_t group : kGroups) {
          for (std::int64_t groups : {1, 18}) {
            if (group == 2048 && groups > 1) continue;
            if (group > 64 && groups > 1) groups = 3;
            const std::int64_t columns = groups * group + (group == 100 && groups > 1 ? 30 : 0);
            SCOPED_TRACE(
                fmt::format("{}, {} threads, {}, {} groups of {}", ceiling, threads, dtype_text(dtype), groups, group));
            for (const Epilogue& epilogue : epilogues_of(columns, group, groups)) {
              SCOPED_TRACE(epilogue.op);
              check(kernels, dtype, columns, epilogue);
            }
          }
        }
      }
    }
  }
}

TEST(CpuQuantizedRows, GateAndQuantizationGiveTheBitsOfTheTwoOps) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t columns, const Epilogue& epilogue) {
    const std::vector<float> values = rows_with_specials(kRows, 2 * columns, 3);
    const Tensor x = with_row_padding(tensor_of(dtype, {kRows, 2 * columns}, values), columns % 5);
    for (const char* gate : {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
      for (const char* intermediate : {"input_dtype", "f32"}) {
        if (dtype == DType::f32 && std::string(intermediate) == "f32") continue;
        SCOPED_TRACE(fmt::format("{}, {}", gate, intermediate));
        const DType between = std::string(intermediate) == "f32" ? DType::f32 : dtype;
        const Tensor wide = tensor_of(between, {kRows, 2 * columns}, values_of(x));
        const Tensor product = kernels.call(gate, {wide}, {}, {Meta::tensor(between, {kRows, columns})})[0];
        expect_same_results(quantized(kernels, epilogue, product),
                            fused(kernels, gate, epilogue, {x}, {{"intermediate", EnumWord{intermediate}}}));
      }
    }
  });
}

std::optional<Tensor> weight_of(int kind, DType dtype, std::int64_t columns) {
  if (kind == 0) return std::nullopt;
  return tensor_of(kind == 1 ? DType::f32 : dtype, {columns}, normal_values(static_cast<std::size_t>(columns), 5));
}

TEST(CpuQuantizedRows, NormAndQuantizationGiveTheBitsOfTheTwoOps) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t columns, const Epilogue& epilogue) {
    const Tensor x =
        with_row_padding(tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 3)), columns % 5);
    for (int kind : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("weight {}", kind));
      const std::optional<Tensor> weight = weight_of(kind, dtype, columns);
      const Attributes attributes{{"epsilon", 1e-5},
                                  {"variance_size", kind == 0 ? Attribute((columns + 1) / 2) : Attribute()}};
      const Tensor normalized =
          kernels.call("rms_norm", {x, weight}, attributes, {Meta::tensor(dtype, {kRows, columns})})[0];
      expect_same_results(quantized(kernels, epilogue, normalized),
                          fused(kernels, "rms_norm", epilogue, {x, weight}, attributes));
    }
  });
}

TEST(CpuQuantizedRows, SumNormAndQuantizationGiveTheBitsOfTheTwoOpsOverTheResidual) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t columns, const Epilogue& epilogue) {
    const Tensor x = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 3));
    const Tensor residual =
        tensor_of(dtype, {kRows, columns}, normal_values(static_cast<std::size_t>(kRows * columns), 2));
    for (int kind : {0, 1, 2}) {
      const std::optional<Tensor> weight = weight_of(kind, dtype, columns);
      for (const char* intermediate : {"f32", "input_dtype"}) {
        SCOPED_TRACE(fmt::format("weight {}, {}", kind, intermediate));
        const Attributes attributes{
            {"epsilon", 1e-6}, {"variance_size", Attribute()}, {"intermediate", EnumWord{intermediate}}};
        const auto sums = kernels.call("fused_add_rms_norm", {x, residual, weight}, attributes, {x.meta, x.meta});
        const auto came =
            fused(kernels, "fused_add_rms_norm", epilogue, {x, residual, weight}, attributes, {residual.meta});
        expect_same_results(quantized(kernels, epilogue, sums[0]), came);
        expect_same_bits(values_of(sums[1]), values_of(came.back()), "residual");
      }
    }
  });
}

// Rows of special values, quantized by a separate op, compared with the definition in plain scalar code.
TEST(CpuQuantizedRows, RowsOfSpecialValuesGiveTheCodesOfTheMeaning) {
  constexpr std::int64_t kColumns = 200;
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (DType dtype : kFloatTypes) {
      SCOPED_TRACE(fmt::format("{}, {}", ceiling, dtype_text(dtype)));
      const Tensor x = tensor_of(dtype, {kRows, kColumns}, rows_with_specials(kRows, kColumns, 4));
      const std::vector<float> values = values_of(x);
      std::vector<std::vector<Tensor>> came;
      const std::vector<Epilogue> epilogues = epilogues_of(kColumns, kColumns, 1);
      for (const Epilogue& epilogue : epilogues) came.push_back(quantized(kernels, epilogue, x));
      for (std::size_t t = 0; t < epilogues.size(); ++t) {
        const bool int8_row = epilogues[t].op == "dynamic_per_token_scaled_int8_quant";
        if (!int8_row && epilogues[t].op != "dynamic_per_token_scaled_fp8_quant") continue;
        const bool bounded = epilogues[t].tensor.has_value();
        for (std::int64_t row = 0; row < kRows; ++row) {
          const float* from = values.data() + row * kColumns;
          float magnitude = 0;
          for (std::int64_t i = 0; i < kColumns; ++i)
            if (!std::isnan(from[i]) || !int8_row)
              magnitude = std::isnan(magnitude) || std::abs(from[i]) <= magnitude ? magnitude : std::abs(from[i]);
          float scale = magnitude / 127.0f;
          if (!int8_row) {
            if (bounded && magnitude > 1.5f) magnitude = 1.5f;
            scale = bounded ? magnitude * static_cast<float>(1.0 / 448) : magnitude / 448.0f;
            scale = scale < static_cast<float>(1.0 / (448 * 512)) ? static_cast<float>(1.0 / (448 * 512)) : scale;
          }
          const float given = came[t][1].as<float>()[row];
          ASSERT_TRUE(scale == given || (std::isnan(scale) && std::isnan(given))) << "row " << row;
          for (std::int64_t i = 0; i < kColumns; ++i) {
            const float scaled = int8_row || bounded ? from[i] * (1.0f / scale) : from[i] / scale;
            const int code = came[t][0].as<std::int8_t>()[row * kColumns + i];
            if (int8_row) {
              const float whole = std::isnan(scaled) ? 0 : std::nearbyint(std::min(127.0f, std::max(-128.0f, scaled)));
              ASSERT_EQ(static_cast<int>(whole), code) << "row " << row << ", " << from[i] << " by " << scale;
            } else {
              ASSERT_EQ(f32_to_f8e4m3(scaled) & (std::isnan(scaled) ? 0x7f : 0xff),
                        static_cast<std::uint8_t>(code) & (std::isnan(scaled) ? 0x7f : 0xff))
                  << "row " << row << ", " << from[i] << " by " << scale;
            }
          }
        }
      }
    }
  }
}

// Quotients that are rounded once decide the codes: scales that are no power of two, values of few bits, and among them
// values between two codes.
TEST(CpuQuantizedRows, EveryQuotientOfABfloatGivesTheCodeOfTheDivision) {
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {128, 4096}));
    for (int row = 0; row < 128; ++row)
      for (int i = 0; i < 4096; ++i)
        x.as<std::uint16_t>()[row * 4096 + i] =
            i == 0 ? static_cast<std::uint16_t>(0x4300 + row)  // the largest: 128 to 255
                   : static_cast<std::uint16_t>((i & 1) << 15 | (0x4300 - i / 2));
    const Meta codes = Meta::tensor(DType::f8e4m3, {128, 4096}), scales = Meta::tensor(DType::f32, {128, 1});
    const auto came = kernels.call("per_token_group_quant_fp8", {x, std::nullopt}, fp8_groups(4096), {codes, scales});
    const auto int8 = kernels.call("per_token_group_quant_int8", {x},
                                   {{"group_size", 4096}, {"eps", 1e-10}, {"rounding", EnumWord{"nearest"}}},
                                   {Meta::tensor(DType::i8, {128, 4096}), scales});
    const std::vector<float> values = values_of(x);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(f32_to_f8e4m3(values[i] / came[1].as<float>()[i / 4096]), came[0].as<std::uint8_t>()[i])
          << values[i] << " of row " << i / 4096;
      ASSERT_EQ(static_cast<int>(std::nearbyint(values[i] / int8[1].as<float>()[i / 4096])),
                int8[0].as<std::int8_t>()[i])
          << values[i] << " of row " << i / 4096;
    }
  }
}

TEST(CpuQuantizedRows, QuotientsOfEverySignificandOfHalvesGiveTheCodesOfTheDivisionByAnyScale) {
  constexpr std::int64_t kColumns = 2048;
  std::vector<float> values;
  for (int i = 0; i < kColumns; ++i)
    values.push_back((i < 1024 ? 1.0f : -8.0f) * (1 + static_cast<float>(i % 1024) / 1024));
  const Tensor x = tensor_of(DType::f16, {1, kColumns}, values);
  const Meta codes = Meta::tensor(DType::f8e4m3, {1, kColumns}), scales = Meta::tensor(DType::f32, {1, 1});
  std::mt19937 random(11);
  std::uniform_real_distribution<float> between(0.04f, 0.08f);
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (int repetition = 0; repetition < 300; ++repetition) {
      // One with the largest significand.
      const float scale = repetition == 0 ? 0x1.fffffep-5f : between(random);
      Attributes attributes = fp8_groups(kColumns);
      set_all(attributes, {{"minimum_scale", double{scale}}});
      const auto came = kernels.call("per_token_group_quant_fp8", {x, std::nullopt}, attributes, {codes, scales});
      ASSERT_EQ(scale, came[1].as<float>()[0]);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(f32_to_f8e4m3(values[i] / scale), came[0].as<std::uint8_t>()[i]) << values[i] << " by " << scale;
    }
  }
}

Attributes with_quantization(Attributes attributes, std::int64_t group, const char* rounding) {
  set_all(attributes, {{"group_size", group}, {"eps", 1e-10}, {"rounding", EnumWord{rounding}}});
  return attributes;
}

std::vector<Meta> quantized_metas(const Tensor& x, std::int64_t columns, std::int64_t group) {
  Shape codes = x.meta.shape;
  codes.back() = columns;
  Shape scales = codes;
  scales.back() = columns / group;
  return {Meta::tensor(DType::i8, codes), Meta::tensor(DType::f32, scales)};
}

// Where scales are as small as floats can be, quotients leave the codes and may be NaN.
TEST(CpuQuantizedRows, TinyScalesGiveTheCodesOfTheMeaning) {
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const double least : {0.0, 1e-45, 1e-38, 1e-36}) {
      for (std::int64_t group : {32, 5}) {
        std::vector<float> x;
        for (std::int64_t i = 0; i < 8 * group; ++i) {
          const double size[] = {0, 1e-45, 3e-43, 1e-40, 1e-38, 1.5e-36, 1e-30, 1};
          x.push_back(static_cast<float>(size[i / group] * (1 - 2 * static_cast<double>(i % group) / 31)));
        }
        const Tensor rows = tensor_of(DType::f32, {1, 8 * group}, x);
        Attributes attributes = with_quantization({}, group, "nearest");
        attributes.set("eps", least);
        const auto came =
            kernels.call("per_token_group_quant_int8", {rows}, attributes, quantized_metas(rows, 8 * group, group));
        for (std::int64_t i = 0; i < 8 * group; ++i) {
          float largest = static_cast<float>(least);
          for (std::int64_t k = i / group * group; k < (i / group + 1) * group; ++k)
            largest = std::max(largest, std::abs(x[static_cast<std::size_t>(k)]));
          const float scale = largest / 127.0f, ratio = x[static_cast<std::size_t>(i)] / scale;
          EXPECT_EQ(scale, came[1].as<float>()[i / group]);
          const float code = std::isnan(ratio) ? 0 : std::nearbyint(std::min(127.0f, std::max(-128.0f, ratio)));
          EXPECT_EQ(static_cast<int>(code), came[0].as<std::int8_t>()[i]) << ratio;
        }
      }
    }
  }
}

TEST(CpuQuantizedRows, EveryBfloatHasTheActivationOfItsMeaning) {
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {512, 256}));
    for (int code = 0; code < 65536; ++code) {
      x.as<std::uint16_t>()[code / 128 * 256 + code % 128] = static_cast<std::uint16_t>(code);
      x.as<std::uint16_t>()[code / 128 * 256 + 128 + code % 128] = 0x3f80;  // 1
    }
    const Tensor came = kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::bf16, {512, 128})})[0];
    std::vector<float> wanted;
    for (int code = 0; code < 65536; ++code)
      wanted.push_back(rounded(DType::bf16, reference_silu(float_of_bits(static_cast<std::uint32_t>(code) << 16))));
    expect_same_bits(wanted, values_of(came), ceiling);
  }
}

// The same for bf16 that are read as pairs: each is alone in a group, whose scale reveals all of its bits.
TEST(CpuQuantizedRows, EveryBfloatHasTheActivationOfItsMeaningInAGroup) {
  constexpr std::int64_t kGroup = 32, kGroupsOfRow = 128, kColumns = kGroup * kGroupsOfRow, kAll = 512;
  Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {kAll, 2 * kColumns}));
  std::memset(x.data(), 0, static_cast<std::size_t>(x.storage->bytes()));
  for (std::int64_t code = 0; code < 65536; ++code) {
    std::uint16_t* row = x.as<std::uint16_t>() + code / kGroupsOfRow * 2 * kColumns;
    const std::int64_t column = code % kGroupsOfRow * kGroup + code % 31;
    row[column] = static_cast<std::uint16_t>(code);
    row[kColumns + column] = 0x3f80;  // 1
  }
  Epilogue epilogue{"per_token_group_quant_fp8",
                    fp8_groups(kGroup),
                    {Meta::tensor(DType::f8e4m3, {kAll, kColumns}), Meta::tensor(DType::f32, {kAll, kGroupsOfRow})}};
  set_all(epilogue.attributes, {{"eps", 0.0}});
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    const Tensor product = kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::bf16, {kAll, kColumns})})[0];
    expect_same_results(quantized(kernels, epilogue, product),
                        fused(kernels, "silu_and_mul", epilogue, {x}, {{"intermediate", EnumWord{"input_dtype"}}}));
  }
}

TEST(CpuQuantizedRows, RefusesGroupsThatCannotWait) {
  RowKernels kernels("baseline", 1);
  constexpr std::int64_t kWide = 131072;
  const Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, 2 * kWide}));
  const Attributes attributes = with_quantization({}, kWide, "nearest");
  EXPECT_EQ(
      kernels.supports("silu_and_mul_per_token_group_quant_int8", {x}, attributes, quantized_metas(x, kWide, kWide))
          .reason(),
      "groups have 131072 columns; up to 65536 are supported");
  EXPECT_TRUE(kernels.supports("per_token_group_quant_int8", {x}, attributes, quantized_metas(x, 2 * kWide, kWide)));
}

}  // namespace weft::cpu_quantized_rows_test
