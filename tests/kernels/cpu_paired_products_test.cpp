// Where factors are bf16, kernels of a row-wise op and its quantization round products by arithmetic of their own
// (lib/paired_products.h).

#include <cstring>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/kernels/cpu_quantized_rows_support.h"

namespace weft::cpu_paired_products_test {

// Each is alone in a group, whose scale reveals all of its bits. Silu does not change numbers from 128 on.
TEST(CpuPairedProducts, EveryProductOfSignificandsIsRoundedAsTheProductIs) {
  constexpr std::int64_t kGroup = 32, kSignificands = 128, kColumns = kGroup * kSignificands;
  Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {kSignificands, 2 * kColumns}));
  std::memset(x.data(), 0, static_cast<std::size_t>(x.storage->bytes()));
  for (std::int64_t a = 0; a < kSignificands; ++a) {
    for (std::int64_t b = 0; b < kSignificands; ++b) {
      std::uint16_t* at = x.as<std::uint16_t>() + a * 2 * kColumns + b * kGroup + (a + b) % kGroup;
      at[0] = static_cast<std::uint16_t>(0x4300 + a);
      at[kColumns] = static_cast<std::uint16_t>(0xbf80 + b);
    }
  }
  const Epilogue epilogue{"per_token_group_quant_fp8",
                          fp8_groups(kGroup),
                          {Meta::tensor(DType::f8e4m3, {kSignificands, kColumns}),
                           Meta::tensor(DType::f32, {kSignificands, kSignificands})}};
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    const Tensor product =
        kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::bf16, {kSignificands, kColumns})})[0];
    expect_same_results(quantized(kernels, epilogue, product),
                        fused(kernels, "silu_and_mul", epilogue, {x}, {{"intermediate", EnumWord{"input_dtype"}}}));
  }
}

// bf16 by their codes: rows of ordinary ones in which one pair of factors, or a group of them, is unusual.
class UnusualFactors : public testing::Test {
 protected:
  static constexpr std::int64_t kGroup = 64, kColumns = 1024 + 5 * kGroup;
  // 0, -0, the smallest, odd and even denormals, the smallest normal, 2^-60, 2^64, 2^65, -2^70, the largest,
  // infinities, NaN of both signs.
  static constexpr std::uint16_t kUnusual[] = {0x0000, 0x8000, 0x0001, 0x0005, 0x8007, 0x0081, 0x0083, 0x2180, 0x5f80,
                                               0x6000, 0xe280, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x3f80};
  static constexpr std::int64_t kKinds = std::size(kUnusual), kCases = 2 * kKinds * kKinds;

  UnusualFactors() {
    const auto count = static_cast<std::size_t>(kCases * kColumns);
    first_ = tensor_of(DType::bf16, {kCases, kColumns}, normal_values(count, 21));
    second_ = tensor_of(DType::bf16, {kCases, kColumns}, normal_values(count, 22));
    for (std::int64_t i = 0; i < kCases; ++i) {
      const std::int64_t at = i * kColumns + (i % 2 == 0 ? i % kColumns : 1024 + kGroup);
      for (std::int64_t k = 0; k < (i % 2 == 0 ? 1 : kGroup); ++k) {
        first_.as<std::uint16_t>()[at + k] = kUnusual[i / 2 / kKinds];
        second_.as<std::uint16_t>()[at + k] = kUnusual[i / 2 % kKinds];
      }
    }
  }
  static std::vector<Epilogue> epilogues(std::int64_t rows) {
    const Meta scales = Meta::tensor(DType::f32, {rows, kColumns / kGroup});
    std::vector<Epilogue> epilogues;
    for (double eps : {1e-10, 0.0}) {
      epilogues.push_back(
          {"per_token_group_quant_fp8", fp8_groups(kGroup), {Meta::tensor(DType::f8e4m3, {rows, kColumns}), scales}});
      set_all(epilogues.back().attributes, {{"eps", eps}});
      epilogues.push_back(
          {"per_token_group_quant_int8",
           {{"group_size", kGroup}, {"eps", eps}, {"rounding", EnumWord{eps == 0 ? "nearest" : "toward_zero"}}},
           {Meta::tensor(DType::i8, {rows, kColumns}), scales}});
    }
    return epilogues;
  }
  // Every `step`th row.
  static Tensor some_rows(const Tensor& all, std::int64_t step) {
    Tensor some = Tensor::empty(Meta::tensor(DType::bf16, {kCases / step, kColumns}));
    for (std::int64_t row = 0; row < kCases / step; ++row)
      std::memcpy(some.as<std::uint16_t>() + row * kColumns, all.as<std::uint16_t>() + row * step * kColumns,
                  2 * kColumns);
    return some;
  }
  Tensor first_, second_;
};

TEST_F(UnusualFactors, OfAGateGiveTheCodesOfTheTwoOps) {
  Tensor x = Tensor::empty(Meta::tensor(DType::bf16, {kCases, 2 * kColumns}));
  for (std::int64_t row = 0; row < kCases; ++row) {
    std::uint16_t* to = x.as<std::uint16_t>() + row * 2 * kColumns;
    std::memcpy(to, first_.as<std::uint16_t>() + row * kColumns, 2 * kColumns);
    std::memcpy(to + kColumns, second_.as<std::uint16_t>() + row * kColumns, 2 * kColumns);
  }
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    const Tensor product = kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::bf16, {kCases, kColumns})})[0];
    for (const Epilogue& epilogue : epilogues(kCases)) {
      SCOPED_TRACE(ceiling + ", " + epilogue.op);
      expect_same_results(quantized(kernels, epilogue, product), fused(kernels, "silu_and_mul", epilogue, {x}, {}));
    }
  }
}

TEST_F(UnusualFactors, OfNormsGiveTheCodesOfTheTwoOps) {
  const Tensor x = some_rows(first_, 7), residual = some_rows(second_, 7);
  const Attributes norm{{"epsilon", 1e-6}, {"variance_size", Attribute()}};
  Attributes sum_norm = norm;
  sum_norm.set("intermediate", EnumWord{"input_dtype"});
  for (const std::string& ceiling : vector_features_to_try()) {
    RowKernels kernels(ceiling, 1);
    for (const std::uint16_t unusual : {0x0001, 0x2180, 0x5f80, 0xe280, 0xffc0}) {
      const Tensor weight = Tensor::empty(Meta::tensor(DType::bf16, {kColumns}));
      std::memcpy(weight.data(), second_.data(), 2 * kColumns);
      for (std::int64_t k = 0; k < kGroup; ++k) weight.as<std::uint16_t>()[1024 + kGroup + k] = unusual;
      const Tensor y = kernels.call("rms_norm", {x, weight}, norm, {x.meta})[0];
      const auto sums = kernels.call("fused_add_rms_norm", {x, residual, weight}, sum_norm, {x.meta, x.meta});
      for (const Epilogue& epilogue : epilogues(kCases / 7)) {
        SCOPED_TRACE(fmt::format("{}, {}, weight {:#x}", ceiling, epilogue.op, unusual));
        expect_same_results(quantized(kernels, epilogue, y), fused(kernels, "rms_norm", epilogue, {x, weight}, norm));
        const auto came = fused(kernels, "fused_add_rms_norm", epilogue, {x, residual, weight}, sum_norm, {x.meta});
        expect_same_results(quantized(kernels, epilogue, sums[0]), came);
        expect_same_bits(values_of(sums[1]), values_of(came.back()), "residual");
      }
    }
  }
}

}  // namespace weft::cpu_paired_products_test
