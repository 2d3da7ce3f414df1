// grouped_linear_int8 on the CPU: each row has the bits of linear_int8 with the weight of its expert alone.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/block_format.h"
#include "tests/kernels/cpu_linear_support.h"
#include "tests/test_context.h"

namespace weft::cpu_grouped_linear_int8_test {

// Rows of codes and the experts of a stack, which has `count` matrices of the same random weight.
struct Case {
  std::int64_t count, columns, depth;
  Tensor codes, scale, weight, experts, bias;

  Case(DType dtype, std::int64_t stack, std::int64_t width, const std::vector<std::int32_t>& chosen)
      : count(stack),
        columns(width),
        depth(whole_blocks(dtype, 96)),
        codes(Tensor::empty(Meta::tensor(DType::i8, {rows_of(chosen), depth}))),
        scale(random_floats(DType::f32, {rows_of(chosen), depth / 32}, 2)),
        weight(random_weight(dtype, count * columns, depth, 3)),
        experts(Tensor::from_bytes(Meta::tensor(DType::i32, {rows_of(chosen)}), chosen.data())),
        bias(random_floats(DType::f32, {count, columns}, 4)) {
    std::mt19937 random(5);
    for (std::int64_t i = 0; i < rows_of(chosen) * depth; ++i)
      codes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
    weight.meta = Meta::tensor(dtype, {count, columns, depth});
  }

  static std::int64_t rows_of(const std::vector<std::int32_t>& chosen) {
    return static_cast<std::int64_t>(chosen.size());
  }
  std::int64_t rows() const { return codes.meta.shape[0].number(); }

  // One row, and the matrix of one expert.
  Tensor row_of(const Tensor& all, std::int64_t row) const {
    const std::int64_t width = all.meta.shape[1].number(), bytes = bytes_of(all.meta.dtype, width);
    return Tensor::from_bytes(Meta::tensor(all.meta.dtype, {1, width}), all.data() + row * bytes);
  }
  Tensor matrix_of(std::int64_t expert) const {
    const std::int64_t bytes = bytes_of(weight.meta.dtype, columns * depth);
    return Tensor::from_bytes(Meta::tensor(weight.meta.dtype, {columns, depth}), weight.data() + expert * bytes);
  }
};

Tensor run(LinearFamily& family, const Case& one, const Tensor& stack, bool has_bias = false) {
  return family.call("grouped_linear_int8",
                     {one.codes, one.scale, stack, one.experts, has_bias ? std::optional(one.bias) : std::nullopt},
                     {{"dtype", DType::f32}}, Meta::tensor(DType::f32, {one.rows(), one.columns}));
}

// Row by row with linear_int8; the bias is added to its f32 result.
std::vector<float> wanted(LinearFamily& family, const Case& one, bool has_bias = false) {
  std::vector<Tensor> matrices;
  for (std::int64_t expert = 0; expert < one.count; ++expert) matrices.push_back(family.pack(one.matrix_of(expert)));
  std::vector<float> all;
  for (std::int64_t row = 0; row < one.rows(); ++row) {
    const std::int32_t expert = one.experts.as<std::int32_t>()[row];
    const Tensor result = family.call(
        "linear_int8",
        {one.row_of(one.codes, row), one.row_of(one.scale, row), matrices[static_cast<std::size_t>(expert)]},
        {{"dtype", DType::f32}}, Meta::tensor(DType::f32, {1, one.columns}));
    for (std::int64_t column = 0; column < one.columns; ++column)
      all.push_back(result.as<float>()[column] +
                    (has_bias ? one.bias.as<float>()[expert * one.columns + column] : 0.0f));
  }
  return all;
}

void expect_bits(const Tensor& came, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(came.as<float>()[i]), std::bit_cast<std::uint32_t>(values[i]))
        << "element " << i;
}

TEST(CpuGroupedLinearInt8, GivesEachRowTheBitsOfItsExpertAlone) {
  for (const DType dtype : integer_block_types())
    for (const std::string& ceiling : cpu_features_to_try())
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} {} threads {}", dtype_text(dtype), ceiling, threads));
        LinearFamily family(ceiling, threads);
        // Runs of equal experts, an expert with several runs, and one without rows.
        const Case one(dtype, 4, 70, {0, 0, 0, 3, 3, 3, 3, 3, 1, 0, 0, 3});
        const std::vector<float> values = wanted(family, one);
        expect_bits(run(family, one, family.pack(one.weight)), values);
        expect_bits(run(family, one, one.weight), values);
      }
}

TEST(CpuGroupedLinearInt8, SharesMoreRowsOfAnExpertThanAChunkHolds) {
  std::vector<std::int32_t> chosen(1030, 1);
  chosen.insert(chosen.end(), 3, 2);
  const Case one(DType::q4_1, 3, 33, chosen);
  LinearFamily family("", 3);
  const std::vector<float> values = wanted(family, one);
  expect_bits(run(family, one, family.pack(one.weight)), values);
  expect_bits(run(family, one, one.weight), values);
}

TEST(CpuGroupedLinearInt8, AddsTheBiasOfTheExpertBeforeRounding) {
  const Case one(DType::q8_0, 3, 45, {2, 2, 0, 1});
  LinearFamily family("", 2);
  expect_bits(run(family, one, family.pack(one.weight), true), wanted(family, one, true));
}

TEST(CpuGroupedLinearInt8, AcceptsNoRows) {
  const Case one(DType::q4_0, 2, 40, {});
  LinearFamily family("", 2);
  run(family, one, family.pack(one.weight));
}

TEST(CpuGroupedLinearInt8, NamesAnExpertThatTheStackDoesNotHave) {
  LinearFamily family("", 1);
  for (const std::int32_t expert : {-1, 2}) {
    const Case one(DType::q4_0, 2, 40, {0, expert});
    try {
      run(family, one, family.pack(one.weight));
      ADD_FAILURE() << "took expert " << expert;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("[grouped_linear_int8] expert {} ", expert)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(CpuGroupedLinearInt8, RefusesWithAReason) {
  LinearFamily family("", 1);
  const Case one(DType::q8_0, 2, 40, {0, 1});
  const auto reason = [&](const Tensor& weight, const Tensor& experts, DType dtype) {
    return family
        .supports("grouped_linear_int8", {one.codes, one.scale, weight, experts, std::nullopt}, {{"dtype", dtype}},
                  Meta::tensor(dtype, {2, 40}))
        .reason();
  };
  EXPECT_EQ(reason(one.weight, one.experts, DType::f32), "");
  EXPECT_EQ(reason(one.weight, one.experts, DType::f64), "no rounding to f64");
  EXPECT_EQ(reason(random_floats(DType::f32, {2, 40, 96}, 1), one.experts, DType::f32), "f32 is not a block type");
  Tensor apart = one.experts;
  apart.meta = Meta::strided(DType::i32, {2}, {2});
  EXPECT_EQ(reason(one.weight, apart, DType::f32), "experts is not contiguous");
}

}  // namespace weft::cpu_grouped_linear_int8_test
