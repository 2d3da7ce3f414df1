// Kernels whose op is a row-wise op and its quantisation: codes and scales of the two kernels one after the other,
// which other tests hold against their meanings.

#include <cstring>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tensor/house_math.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft {
namespace {

constexpr std::int64_t kRows = 9;
// Groups that registers or vectors hold, that they do not, and the largest that is supported.
constexpr std::int64_t kGroups[] = {1, 7, 32, 64, 100, 1024};

Attributes with_quantisation(Attributes attributes, std::int64_t group, const char* rounding) {
  attributes.set("group_size", group);
  attributes.set("eps", 1e-10);
  attributes.set("rounding", EnumWord{rounding});
  return attributes;
}

std::vector<Meta> quantised_metas(const Tensor& x, std::int64_t columns, std::int64_t group) {
  Shape codes = x.meta.shape;
  codes.back() = columns;
  Shape scales = codes;
  scales.back() = columns / group;
  return {Meta::tensor(DType::i8, codes), Meta::tensor(DType::f32, scales)};
}

void expect_same_codes(const Tensor& wanted, const Tensor& came) {
  const std::int64_t count = element_count(wanted.meta.shape).number();
  for (std::int64_t i = 0; i < count; ++i)
    ASSERT_EQ(wanted.as<std::int8_t>()[i], came.as<std::int8_t>()[i]) << "code " << i;
}

// Runs `check(kernels, dtype, group, columns, rounding)` on every instruction set of this host.
template <class Check>
void for_each_case(Check check) {
  for (const std::string& ceiling : row_ceilings()) {
    for (int threads : {1, 2}) {
      RowKernels kernels(ceiling, threads);
      for (DType dtype : kFloatTypes) {
        for (std::int64_t group : kGroups) {
          for (std::int64_t groups : {1, 18, 40}) {
            if (group > 64 && groups > 1) groups = 3;
            const char* rounding = groups == 18 ? "toward_zero" : "nearest";
            SCOPED_TRACE(
                fmt::format("{}, {} threads, {}, {} groups of {}", ceiling, threads, dtype_text(dtype), groups, group));
            check(kernels, dtype, group, groups * group, rounding);
          }
        }
      }
    }
  }
}

// The quantisation alone, of what the first op gave.
std::vector<Tensor> quantised(RowKernels& kernels, const Tensor& x, std::int64_t group, const char* rounding) {
  return kernels.call("per_token_group_quant_int8", {x}, with_quantisation({}, group, rounding),
                      quantised_metas(x, x.meta.shape.back().number(), group));
}

TEST(CpuQuantisedRows, GateAndQuantisationGiveTheBitsOfTheTwoOps) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t group, std::int64_t columns, const char* rounding) {
    for (const char* gate : {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
      SCOPED_TRACE(gate);
      const Tensor x = with_row_padding(
          tensor_of(dtype, {kRows, 2 * columns}, rows_with_specials(kRows, 2 * columns, 3)), columns % 5);
      const Tensor product = kernels.call(gate, {x}, {}, {Meta::tensor(dtype, {kRows, columns})})[0];
      const auto wanted = quantised(kernels, product, group, rounding);
      const auto came = kernels.call(std::string(gate) + "_per_token_group_quant_int8", {x},
                                     with_quantisation({}, group, rounding), quantised_metas(x, columns, group));
      expect_same_codes(wanted[0], came[0]);
      expect_same_bits(values_of(wanted[1]), values_of(came[1]), "scales");
    }
  });
}

std::optional<Tensor> weight_of(int kind, DType dtype, std::int64_t columns) {
  if (kind == 0) return std::nullopt;
  return tensor_of(kind == 1 ? DType::f32 : dtype, {columns}, normal_values(static_cast<std::size_t>(columns), 5));
}

TEST(CpuQuantisedRows, NormAndQuantisationGiveTheBitsOfTheTwoOps) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t group, std::int64_t columns, const char* rounding) {
    for (int kind : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("weight {}", kind));
      const Tensor x =
          with_row_padding(tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 3)), columns % 5);
      const std::optional<Tensor> weight = weight_of(kind, dtype, columns);
      const Attributes attributes{{"epsilon", 1e-5},
                                  {"variance_size", kind == 0 ? Attribute((columns + 1) / 2) : Attribute()}};
      const Tensor normalised =
          kernels.call("rms_norm", {x, weight}, attributes, {Meta::tensor(dtype, {kRows, columns})})[0];
      const auto wanted = quantised(kernels, normalised, group, rounding);
      const auto came =
          kernels.call("rms_norm_per_token_group_quant_int8", {x, weight},
                       with_quantisation(attributes, group, rounding), quantised_metas(x, columns, group));
      expect_same_codes(wanted[0], came[0]);
      expect_same_bits(values_of(wanted[1]), values_of(came[1]), "scales");
    }
  });
}

TEST(CpuQuantisedRows, SumNormAndQuantisationGiveTheBitsOfTheTwoOpsOverTheResidual) {
  for_each_case([](RowKernels& kernels, DType dtype, std::int64_t group, std::int64_t columns, const char* rounding) {
    for (int kind : {0, 1, 2}) {
      for (const char* intermediate : {"f32", "input_dtype"}) {
        SCOPED_TRACE(fmt::format("weight {}, {}", kind, intermediate));
        const Tensor x = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 3));
        const Tensor residual = tensor_of(dtype, {kRows, columns}, normal_values(kRows * columns, 2));
        const std::optional<Tensor> weight = weight_of(kind, dtype, columns);
        const Attributes attributes{
            {"epsilon", 1e-6}, {"variance_size", Attribute()}, {"intermediate", EnumWord{intermediate}}};
        const auto sums = kernels.call("fused_add_rms_norm", {x, residual, weight}, attributes, {x.meta, x.meta});
        const auto wanted = quantised(kernels, sums[0], group, rounding);
        std::vector<Meta> metas = quantised_metas(x, columns, group);
        metas.push_back(residual.meta);
        const auto came = kernels.call("fused_add_rms_norm_per_token_group_quant_int8", {x, residual, weight},
                                       with_quantisation(attributes, group, rounding), metas);
        expect_same_codes(wanted[0], came[0]);
        expect_same_bits(values_of(wanted[1]), values_of(came[1]), "scales");
        expect_same_bits(values_of(sums[1]), values_of(came[2]), "residual");
      }
    }
  });
}

// Where scales are as small as floats can be, quotients leave the codes and may be NaN.
TEST(CpuQuantisedRows, TinyScalesGiveTheCodesOfTheMeaning) {
  for (const std::string& ceiling : row_ceilings()) {
    RowKernels kernels(ceiling, 1);
    for (const double least : {0.0, 1e-45, 1e-38, 1e-36}) {
      for (std::int64_t group : {32, 5}) {
        std::vector<float> x;
        for (std::int64_t i = 0; i < 8 * group; ++i) {
          const double size[] = {0, 1e-45, 3e-43, 1e-40, 1e-38, 1.5e-36, 1e-30, 1};
          x.push_back(static_cast<float>(size[i / group] * (1 - 2 * static_cast<double>(i % group) / 31)));
        }
        const Tensor rows = tensor_of(DType::f32, {1, 8 * group}, x);
        Attributes attributes = with_quantisation({}, group, "nearest");
        attributes.set("eps", least);
        const auto came =
            kernels.call("per_token_group_quant_int8", {rows}, attributes, quantised_metas(rows, 8 * group, group));
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

TEST(CpuQuantisedRows, EveryBfloatHasTheActivationOfItsMeaning) {
  for (const std::string& ceiling : row_ceilings()) {
    RowKernels kernels(ceiling, 1);
    Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {512, 256}));
    for (int code = 0; code < 65536; ++code) {
      x.as<std::uint16_t>()[code / 128 * 256 + code % 128] = static_cast<std::uint16_t>(code);
      x.as<std::uint16_t>()[code / 128 * 256 + 128 + code % 128] = 0x3f80;  // 1
    }
    const Tensor came = kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::bf16, {512, 128})})[0];
    std::vector<float> wanted;
    for (int code = 0; code < 65536; ++code)
      wanted.push_back(rounded(DType::bf16, house_silu(float_of_bits(static_cast<std::uint32_t>(code) << 16))));
    expect_same_bits(wanted, values_of(came), ceiling);
  }
}

TEST(CpuQuantisedRows, RefusesGroupsThatDoNotFitTheirBlock) {
  RowKernels kernels("baseline", 1);
  const Tensor x = tensor_of(DType::f32, {1, 4096}, normal_values(4096, 1));
  const Attributes attributes = with_quantisation({}, 2048, "nearest");
  EXPECT_EQ(kernels.supports("silu_and_mul_per_token_group_quant_int8", {x}, attributes, quantised_metas(x, 2048, 2048))
                .reason(),
            "group_size is 2048; up to 1024 are supported");
  EXPECT_TRUE(kernels.supports("per_token_group_quant_int8", {x}, attributes, quantised_metas(x, 4096, 2048)));
}

}  // namespace
}  // namespace weft
