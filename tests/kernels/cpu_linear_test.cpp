// linear on the CPU, exact mode.

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cpu/lib/flushed.h"
#include "kernels/cpu/lib/linear_calls.h"
#include "tensor/convert.h"
#include "tensor/float8.h"
#include "tests/kernels/cpu_linear_support.h"
#include "tests/kernels/emulated_linear.h"
#include "tests/test_context.h"

namespace weft::cpu_linear_test {

// Row-major f32 of a float or block tensor.
std::vector<float> widened(const Tensor& tensor) {
  const std::int64_t count = element_count(tensor.meta.shape).number();
  std::vector<float> values(static_cast<std::size_t>(count));
  convert_row(tensor.meta.dtype, tensor.data(), DType::f32, reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

// One chain of multiply-adds in k order, each with one rounding or two.
template <bool fused>
float chain(const float* a, const float* b, std::size_t depth) {
  float sum = 0;
  for (std::size_t k = 0; k < depth; ++k) sum = fused ? std::fma(a[k], b[k], sum) : a[k] * b[k] + sum;
  return sum;
}

// The order of AMX tiles: for each 32 k, chains of the even and of the odd k, with subnormal numbers as zeros.
float tile_order(const float* a, const float* b, std::size_t depth) {
  float sum = 0;
  for (std::size_t first = 0; first < depth; first += 32) {
    float chains[2] = {0, 0};
    for (std::size_t k = first; k < std::min(depth, first + 32); ++k)
      chains[k % 2] = cpu::flushed_fma(a[k], b[k], chains[k % 2]);
    sum = cpu::flushed_sum(sum, cpu::flushed_sum(chains[0], chains[1]));
  }
  return sum;
}

using SumOrder = float (*)(const float*, const float*, std::size_t);

// Sums in this order, then the bias, then one rounding to the type of x.
std::vector<float> summed(const Tensor& x, const Tensor& weight, const Tensor* bias, SumOrder order) {
  const std::vector<float> rows = widened(x), columns = widened(weight);
  const std::vector<float> offset = bias == nullptr ? std::vector<float>() : widened(*bias);
  const std::size_t depth = static_cast<std::size_t>(weight.meta.shape[1].number());
  std::vector<float> all;
  for (std::size_t r = 0; r < rows.size() / depth; ++r) {
    for (std::size_t c = 0; c < columns.size() / depth; ++c) {
      float sum = order(rows.data() + r * depth, columns.data() + c * depth, depth);
      if (bias != nullptr) sum += offset[c];
      std::byte rounded[4];
      store_float(x.meta.dtype, rounded, 0, sum);
      all.push_back(load_float(x.meta.dtype, rounded, 0));
    }
  }
  return all;
}

Tensor run(LinearFamily& family, const Tensor& x, const Tensor& weight, const Tensor* bias = nullptr) {
  Shape shape = x.meta.shape;
  shape.back() = weight.meta.shape[0];
  return family.call("linear", {x, weight, bias == nullptr ? std::nullopt : std::optional(*bias)}, {},
                     Meta::tensor(x.meta.dtype, shape));
}

void expect_bits(const Tensor& result, const std::vector<float>& wanted) {
  const std::vector<float> values = widened(result);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(wanted[i]))
        << "element " << i << ": " << values[i] << ", wanted " << wanted[i];
}

bool are_bfloats(const Tensor& x, const Tensor& weight) {
  return x.meta.dtype == DType::bf16 && weight.meta.dtype == DType::bf16;
}

// The order of the level; null where the processor's own dots of bf16 are used.
SumOrder order_of(const LinearFamily& family, const Tensor& x, const Tensor& weight) {
  if (family.features() == CpuFeatures::baseline) return chain<false>;
  if (!are_bfloats(x, weight) || weight.meta.shape[1].number() % 2 != 0) return chain<true>;
  const bool has_dots = family.features() == CpuFeatures::avx512_bf16 && describe_cpu("", 1).fast_bf16_dots;
  return has_dots ? nullptr : tile_order;
}

TEST(CpuLinear, SumsInOrderOfDepthForEveryTypeAndInstructionSet) {
  for (const std::string& ceiling : cpu_features_to_try()) {
    LinearFamily family(ceiling, 1);
    for (const DType dtype : weight_types()) {
      for (const std::int64_t columns : {1, 32, 45}) {
        for (const std::int64_t wanted_depth : {32, 288}) {
          const std::int64_t depth = whole_blocks(dtype, wanted_depth);
          const Tensor weight = random_weight(dtype, columns, depth, 1);
          for (const DType rows : float_types()) {
            const Tensor x = random_floats(rows, {7, depth}, 2);
            const SumOrder order = order_of(family, x, weight);
            if (order == nullptr) continue;
            SCOPED_TRACE(x.meta.text() + " " + weight.meta.text() + " " + ceiling);
            expect_bits(run(family, x, family.pack(weight)), summed(x, weight, nullptr, order));
          }
        }
      }
    }
  }
}

// Each column has one code that is not 0, so that a NaN changes no other column.
TEST(CpuLinear, WidensEveryCodeOfE4m3) {
  constexpr std::int64_t kColumns = 256;
  const float scale = 0.3f;
  for (const DType dtype : {DType::e4m3g32, DType::e4m3g128}) {
    const DTypeInfo& info = dtype_info(dtype);
    Tensor weight = Tensor::empty(Meta::tensor(dtype, {kColumns, info.block_elements}));
    Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, info.block_elements}));
    std::fill_n(x.as<float>(), info.block_elements, 1.0f);
    std::memset(weight.data(), 0, static_cast<std::size_t>(kColumns * info.block_bytes));
    for (std::int64_t code = 0; code < kColumns; ++code) {
      std::byte* block = weight.data() + code * info.block_bytes;
      std::memcpy(block, &scale, sizeof scale);
      block[4 + code * 37 % info.block_elements] = static_cast<std::byte>(code);
    }
    for (const std::string& ceiling : cpu_features_to_try()) {
      LinearFamily family(ceiling, 1);
      const Tensor result = run(family, x, family.pack(weight));
      for (std::int64_t code = 0; code < kColumns; ++code) {
        const float wanted = scale * f8e4m3_to_f32(static_cast<std::uint8_t>(code)), came = result.as<float>()[code];
        ASSERT_TRUE(came == wanted || (std::isnan(came) && std::isnan(wanted)))
            << code << ": " << came << ", wanted " << wanted << " " << weight.meta.text() << " " << ceiling;
      }
    }
  }
}

TEST(CpuLinear, IsNearTheTrueSum) {
  const std::int64_t depth = 1536;
  const Tensor x = random_floats(DType::f32, {3, depth}, 3);
  for (const DType dtype : weight_types()) {
    const Tensor weight = random_weight(dtype, 64, depth, 4);
    const std::vector<float> columns = widened(weight);
    for (const std::string& ceiling : cpu_features_to_try()) {
      LinearFamily family(ceiling, 2);
      const Tensor result = run(family, x, family.pack(weight));
      for (std::int64_t i = 0; i < 3 * 64; ++i) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const double product = static_cast<double>(x.as<float>()[i / 64 * depth + k]) *
                                 columns[static_cast<std::size_t>(i % 64 * depth + k)];
          sum += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(result.as<float>()[i], sum, 1e-5 + 1.3e-6 * magnitude) << weight.meta.text() << " " << ceiling;
      }
    }
  }
}

TEST(CpuLinear, GivesARowTheSameBitsWhateverTheOtherRowsAndThreads) {
  const std::int64_t depth = 160;
  for (const DType dtype : {DType::f32, DType::bf16, DType::q4_1}) {
    for (const DType rows : {DType::f32, DType::bf16}) {
      const Tensor weight = random_weight(dtype, 100, depth, 5);
      const Tensor all = random_floats(rows, {300, depth}, 6);
      for (const std::string& ceiling : cpu_features_to_try()) {
        LinearFamily alone(ceiling, 1), together(ceiling, 2);
        const Tensor packed = alone.pack(weight);
        const Tensor wanted = run(together, all, packed);
        for (std::int64_t count = 1; count <= 37; ++count) {
          Tensor some = all;
          some.meta.shape[0] = count;
          const Tensor result = run(count % 2 ? alone : together, some, packed);
          ASSERT_EQ(std::memcmp(result.data(), wanted.data(), static_cast<std::size_t>(result.meta.bytes().number())),
                    0)
              << weight.meta.text() << " rows " << count << " " << ceiling;
        }
      }
    }
  }
}

TEST(CpuLinear, TakesAnyDepthOfFloatWeights) {
  for (const DType dtype : float_types()) {
    for (const std::int64_t depth : {1, 3, 127, 129}) {
      const Tensor weight = random_weight(dtype, 33, depth, 7), x = random_floats(DType::f32, {2, depth}, 8);
      LinearFamily family("", 1);
      SCOPED_TRACE(weight.meta.text());
      expect_bits(run(family, x, family.pack(weight)), summed(x, weight, nullptr, order_of(family, x, weight)));
    }
  }
}

TEST(CpuLinear, AddsTheBiasBeforeItRounds) {
  const Tensor weight = random_weight(DType::f32, 45, 64, 9);
  for (const DType rows : float_types()) {
    const Tensor x = random_floats(rows, {5, 64}, 10), bias = random_floats(rows, {45}, 11);
    for (const std::string& ceiling : cpu_features_to_try()) {
      LinearFamily family(ceiling, 2);
      SCOPED_TRACE(x.meta.text() + " " + ceiling);
      expect_bits(run(family, x, family.pack(weight), &bias), summed(x, weight, &bias, order_of(family, x, weight)));
    }
  }
}

TEST(CpuLinear, ReadsPlainWeightsToTheSameBits) {
  for (const DType dtype : weight_types()) {
    const std::int64_t depth = whole_blocks(dtype, 96);
    const Tensor weight = random_weight(dtype, 200, depth, 12), x = random_floats(DType::f32, {130, depth}, 13);
    LinearFamily family("", 2);
    SCOPED_TRACE(weight.meta.text());
    expect_bits(run(family, x, weight), widened(run(family, x, family.pack(weight))));
  }
}

TEST(CpuLinear, TakesRowsThatLieApartAndAnyRank) {
  const Tensor weight = random_weight(DType::f32, 33, 64, 14), x = random_floats(DType::bf16, {6, 64}, 15);
  LinearFamily family("", 1);
  const Tensor packed = family.pack(weight);
  const std::vector<float> wanted = widened(run(family, x, packed));

  Tensor apart = Tensor::empty(Meta::tensor(DType::bf16, {6, 80}));
  for (int row = 0; row < 6; ++row) std::memcpy(apart.data() + row * 160, x.data() + row * 128, 128);
  apart.meta = Meta::strided(DType::bf16, {6, 64}, {80, 1});
  expect_bits(run(family, apart, packed), wanted);

  Tensor cube = x, vector = x;
  cube.meta.shape = {2, 3, 64};
  expect_bits(run(family, cube, packed), wanted);
  vector.meta.shape = {64};
  expect_bits(run(family, vector, packed), {wanted.begin(), wanted.begin() + 33});
}

// Rows of bf16 whose products with themselves are about the smallest normal number, some of them subnormal.
Tensor tiny_bfloats(Shape shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = Tensor::empty(Meta::tensor(DType::bf16, std::move(shape)));
  const std::int64_t count = element_count(tensor.meta.shape).number();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = random();
    const std::uint32_t exponent = bits % 8 == 0 ? bits & 0x80 : 0x1e00 + (bits & 0x380);
    tensor.as<std::uint16_t>()[i] = static_cast<std::uint16_t>((bits >> 16 & 0x807f) | exponent);
  }
  return tensor;
}

cpu::LinearVariant with_emulated_tiles() {
  cpu::LinearVariant variant = cpu::kLinearEmulatedPairs;
  variant.bfloats = cpu::kBfloatEmulatedTiles;
  return variant;
}

// Blocks of rows and of depth, and what is left of them.
TEST(CpuLinear, SumsBfloatsInTheOrderOfTiles) {
  for (const std::int64_t depth : {2, 30, 34, 576, 1024, 1086, 2112}) {
    for (const std::int64_t rows : {1, 15, 16, 17, 50, 290}) {
      if (rows > 50 && depth > 34) continue;
      for (const bool tiny : {false, true}) {
        const auto draw = tiny ? tiny_bfloats : [](Shape shape, std::uint32_t seed) {
          return random_floats(DType::bf16, std::move(shape), seed);
        };
        const Tensor weight = draw({33, depth}, 21), x = draw({rows, depth}, 22);
        const std::vector<float> wanted = summed(x, weight, nullptr, tile_order);
        for (const std::string& ceiling : cpu_features_to_try()) {
          LinearFamily family(ceiling, 1);
          if (order_of(family, x, weight) != tile_order) continue;
          SCOPED_TRACE(x.meta.text() + " " + ceiling);
          expect_bits(run(family, x, family.pack(weight)), wanted);
        }
        LinearFamily family("baseline", 1);
        family.run_with([variant = with_emulated_tiles()](const KernelCall& call) { cpu::run_linear(variant, call); });
        SCOPED_TRACE(x.meta.text() + " emulated tiles");
        expect_bits(run(family, x, family.pack(weight)), wanted);
      }
    }
  }
}

// The widened weight, rounded to bf16.
Tensor rounded(const Tensor& weight) {
  const std::vector<float> values = widened(weight);
  Tensor result = Tensor::empty(Meta::tensor(DType::bf16, weight.meta.shape));
  convert_row(DType::f32, reinterpret_cast<const std::byte*>(values.data()), DType::bf16, result.data(),
              static_cast<std::int64_t>(values.size()));
  return result;
}

TEST(CpuLinear, MultipliesBlocksAsTheirWeightsInBf16) {
  for (const DType dtype : block_types()) {
    for (const std::int64_t rows : {1, 2, 3, 17, 130, 290}) {
      if (rows > 17 && dtype != DType::q4_1 && dtype != DType::q6_k && dtype != DType::nf4g32) continue;
      const std::int64_t depth = whole_blocks(dtype, rows == 17 ? 1120 : 160);
      const Tensor weight = random_weight(dtype, 45, depth, 25), x = random_floats(DType::bf16, {rows, depth}, 26);
      const Tensor bias = random_floats(DType::f32, {45}, 27);
      const std::vector<float> wanted = summed(x, rounded(weight), &bias, tile_order);
      const auto came = [&](LinearFamily& family, const Tensor& given) {
        return family.call("linear_bf16", {x, given, bias}, {{"dtype", DType::bf16}},
                           Meta::tensor(DType::bf16, {rows, 45}));
      };
      for (const std::string& ceiling : cpu_features_to_try()) {
        LinearFamily family(ceiling, 1);
        SCOPED_TRACE(x.meta.text() + " " + weight.meta.text() + " " + ceiling);
        const bool is_baseline = family.features() == CpuFeatures::baseline;
        const std::vector<float> of_level = is_baseline ? summed(x, rounded(weight), &bias, chain<false>) : wanted;
        expect_bits(came(family, family.pack(weight)), of_level);
        expect_bits(came(family, weight), of_level);
      }
      LinearFamily family("baseline", 1);
      cpu::LinearVariant variant = cpu::kLinearEmulatedPairs;
      variant.rounded = cpu::kRoundedEmulatedTiles;
      variant.rounds_weights = true;
      family.run_with([variant](const KernelCall& call) { cpu::run_linear(variant, call); });
      SCOPED_TRACE(x.meta.text() + " " + weight.meta.text() + " emulated tiles");
      expect_bits(came(family, family.pack(weight)), wanted);
    }
  }
}

// On hosts that use other products of bf16, too.
TEST(CpuLinear, DotsOfBfloatsAreNearTheTrueSum) {
  if (describe_cpu("", 1).host < CpuFeatures::avx512_bf16) GTEST_SKIP() << "this host has no dots of bf16";
  cpu::LinearVariant variant = cpu::kLinearAvx512;
  variant.bfloats = cpu::kBfloatAvx512Bf16;
  LinearFamily family("baseline", 1);
  family.run_with([variant](const KernelCall& call) { cpu::run_linear(variant, call); });
  const Tensor weight = random_weight(DType::bf16, 45, 640, 23), x = random_floats(DType::bf16, {9, 640}, 24);
  const std::vector<float> came = widened(run(family, x, family.pack(weight)));
  const std::vector<float> wanted = summed(x, weight, nullptr, chain<true>);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(came[i], wanted[i], 1e-4 + 0x1p-7 * std::abs(wanted[i])) << "element " << i;
}

TEST(CpuLinear, RunsOnEmulatedVectors) {
  for (const auto& [variant, bfloat_order] :
       {std::pair(cpu::kLinearEmulatedPairs, SumOrder(tile_order)),
        // The emulated dot of two rounds as two multiply-adds do, so it is the same chain.
        std::pair(cpu::kLinearEmulatedDots, SumOrder(chain<true>)),
        std::pair(with_emulated_tiles(), SumOrder(tile_order))}) {
    LinearFamily family("baseline", 1);
    family.run_with([variant = variant](const KernelCall& call) { cpu::run_linear(variant, call); });
    for (const DType dtype : weight_types()) {
      for (const DType rows : float_types()) {
        for (std::int64_t count = 1; count <= 17; count += 4) {
          const std::int64_t depth = whole_blocks(dtype, 160);
          const Tensor weight = random_weight(dtype, 33, depth, 16), x = random_floats(rows, {count, depth}, 17);
          SCOPED_TRACE(x.meta.text() + " " + weight.meta.text());
          expect_bits(run(family, x, family.pack(weight)),
                      summed(x, weight, nullptr, are_bfloats(x, weight) ? bfloat_order : chain<true>));
        }
      }
    }
  }
}

TEST(CpuLinear, RefusesWithAReason) {
  LinearFamily family("", 1);
  const Meta result = Meta::tensor(DType::f32, {2, 32});
  const auto reason = [&](const Tensor& x, const Tensor& weight) {
    return family.supports("linear", {x, weight, std::nullopt}, {}, result).reason();
  };
  const Tensor weight = random_weight(DType::f32, 32, 64, 1);
  EXPECT_EQ(reason(Tensor::empty(Meta::tensor(DType::f64, {2, 64})), weight), "no rows of f64");
  EXPECT_EQ(reason(random_floats(DType::f32, {2, 64}, 1), Tensor::empty(Meta::tensor(DType::f8e4m3, {32, 64}))),
            "no panels of f8e4m3");
  Tensor apart = random_floats(DType::f32, {2, 128}, 1);
  apart.meta = Meta::strided(DType::f32, {2, 64}, {128, 2});
  EXPECT_EQ(reason(apart, weight), "the elements of a row are not contiguous");
}

}  // namespace weft::cpu_linear_test
