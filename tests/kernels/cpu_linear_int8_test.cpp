// linear_int8 on the CPU against its definition, bit for bit: exact integer dots, one rounding for each multiply-add.

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cpu/lib/linear_calls.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tests/kernels/cpu_linear_support.h"
#include "tests/kernels/emulated_linear.h"
#include "tests/test_context.h"

namespace weft::cpu_linear_int8_test {

struct Activations {
  Tensor codes;  // i8 [rows, depth]
  Tensor scale;  // f32 [rows, groups]
};

// All codes occur, -128 among them; scales of either sign and many magnitudes.
Activations random_activations(std::int64_t rows, std::int64_t depth, std::uint32_t seed) {
  std::mt19937 random(seed);
  Activations x{Tensor::empty(Meta::tensor(DType::i8, {rows, depth})),
                Tensor::empty(Meta::tensor(DType::f32, {rows, depth / 32}))};
  for (std::int64_t i = 0; i < rows * depth; ++i) x.codes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
  std::uniform_real_distribution<float> mantissa(-1.0f, 1.0f);
  for (std::int64_t i = 0; i < rows * depth / 32; ++i)
    x.scale.as<float>()[i] = std::ldexp(mantissa(random), -static_cast<int>(random() % 30));
  return x;
}

std::vector<float> defined_results(const Activations& x, const Tensor& weight) {
  const BlockFormat& format = block_format(weight.meta.dtype);
  const std::int64_t depth = weight.meta.shape[1].number(), rows = x.codes.meta.shape[0].number();
  const std::int64_t columns = weight.meta.shape[0].number(), row_bytes = bytes_of(format.dtype, depth);
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  for (std::int64_t column = 0; column < columns; ++column) {
    const UnpackedRow unpacked = unpack_row(format, weight.data() + column * row_bytes, depth);
    for (std::int64_t row = 0; row < rows; ++row) {
      float& f = all[static_cast<std::size_t>(row * columns + column)];
      for (std::int64_t g = 0; g < depth / format.group; ++g) {
        int dot = 0, sum = 0;
        for (std::int64_t k = g * format.group; k < (g + 1) * format.group; ++k) {
          const int code = x.codes.as<std::int8_t>()[row * depth + k];
          dot += code * unpacked.codes[static_cast<std::size_t>(k)];
          sum += code;
        }
        const float s = x.scale.as<float>()[row * (depth / 32) + g * format.group / 32];
        f = std::fma(static_cast<float>(dot), unpacked.scales[static_cast<std::size_t>(g)] * s, f);
        if (format.has_minimums)
          f = std::fma(unpacked.minimums[static_cast<std::size_t>(g)], s * static_cast<float>(sum), f);
      }
    }
  }
  return all;
}

Tensor run(LinearFamily& family, const Activations& x, const Tensor& weight, DType dtype = DType::f32) {
  const Meta result = Meta::tensor(dtype, {x.codes.meta.shape[0], weight.meta.shape[0]});
  return family.call("linear_int8", {x.codes, x.scale, weight}, {{"dtype", dtype}}, result);
}

void expect_bits(const float* values, const std::vector<float>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(wanted[i]))
        << "element " << i << ": " << values[i] << ", wanted " << wanted[i];
}

TEST(CpuLinearInt8, GivesTheDefinedBitsOnEveryInstructionSet) {
  for (const DType dtype : integer_block_types()) {
    for (const std::int64_t columns : {1, 31, 32, 70}) {
      for (const std::int64_t wanted_depth : {32, 576}) {
        const std::int64_t depth = whole_blocks(dtype, wanted_depth);
        const Tensor weight = random_weight(dtype, columns, depth, 1);
        const Activations x = random_activations(9, depth, 2);
        const std::vector<float> wanted = defined_results(x, weight);
        for (const std::string& ceiling : cpu_features_to_try()) {
          SCOPED_TRACE(weight.meta.text() + " " + ceiling);
          LinearFamily family(ceiling, 1);
          expect_bits(run(family, x, family.pack(weight)).as<float>(), wanted);
        }
      }
    }
  }
}

TEST(CpuLinearInt8, GivesTheSameBitsForEveryRowCountAndThreadCount) {
  std::vector<std::unique_ptr<LinearFamily>> families;
  for (const std::string& ceiling : cpu_features_to_try())
    for (const int threads : {1, 2}) families.push_back(std::make_unique<LinearFamily>(ceiling, threads));
  for (const DType dtype : integer_block_types()) {
    const std::int64_t depth = whole_blocks(dtype, 96);
    const Tensor weight = random_weight(dtype, 130, depth, 3);
    const Tensor packed = families[0]->pack(weight);
    for (std::int64_t rows = 1; rows <= 37; rows += rows < 9 ? 1 : 14) {
      const Activations x = random_activations(rows, depth, 4);
      const std::vector<float> wanted = defined_results(x, weight);
      for (std::size_t i = 0; i < families.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} family {} rows {}", dtype_text(dtype), i, rows));
        expect_bits(run(*families[i], x, packed).as<float>(), wanted);
      }
    }
  }
}

// More k than are unpacked at once, and rows that do not fill the last tile.
TEST(CpuLinearInt8, GivesTheDefinedBitsForDeepRows) {
  for (const DType dtype : integer_block_types()) {
    const std::int64_t depth = whole_blocks(dtype, 1100);
    const Tensor weight = random_weight(dtype, 33, depth, 21);
    const Activations x = random_activations(17, depth, 22);
    const std::vector<float> wanted = defined_results(x, weight);
    for (const std::string& ceiling : cpu_features_to_try()) {
      SCOPED_TRACE(fmt::format("{} {}", dtype_text(dtype), ceiling));
      LinearFamily family(ceiling, 1);
      expect_bits(run(family, x, family.pack(weight)).as<float>(), wanted);
    }
  }
}

TEST(CpuLinearInt8, SharesMoreRowsThanAChunkHolds) {
  const Tensor weight = random_weight(DType::q4_1, 33, 32, 5);
  const Activations x = random_activations(1030, 32, 6);
  LinearFamily family("", 2);
  expect_bits(run(family, x, family.pack(weight)).as<float>(), defined_results(x, weight));
}

TEST(CpuLinearInt8, ReadsPlainWeightsToTheSameBits) {
  for (const DType dtype : integer_block_types()) {
    for (const std::int64_t columns : {5, 300}) {
      const std::int64_t depth = whole_blocks(dtype, 96);
      const Tensor weight = random_weight(dtype, columns, depth, 7);
      const Activations x = random_activations(6, depth, 8);
      LinearFamily family("", 2);
      expect_bits(run(family, x, weight).as<float>(), defined_results(x, weight));
    }
  }
}

// Where a block stores its codes. Those of the other types have too few values to come near a limit.
struct CodeBytes {
  DType dtype;
  std::int64_t first, count;
};
constexpr CodeBytes kCodeBytes[] = {
    {DType::q4_0, 2, 16},    {DType::q4_1, 4, 16},   {DType::q8_0, 2, 32},   {DType::q5_0, 2, 20},
    {DType::q5_1, 4, 20},    {DType::iq4_nl, 2, 16}, {DType::mxfp4, 1, 16},  {DType::q2_k, 16, 64},
    {DType::q3_k, 0, 96},    {DType::q4_k, 16, 128}, {DType::q5_k, 16, 160}, {DType::q6_k, 0, 192},
    {DType::iq4_xs, 8, 128}, {DType::i4g32, 3, 16},  {DType::i4g64, 3, 32},  {DType::i4g128, 3, 64},
};

TEST(CpuLinearInt8, IsExactAtTheLargestCodes) {
  for (const auto& [dtype, first, count] : kCodeBytes) {
    for (const int weight_byte : {0x00, 0x0f, 0xf0, 0xff, 0x80, 0x7f}) {
      for (const int code : {-128, 127}) {
        const std::int64_t depth = whole_blocks(dtype, 64);
        Tensor weight = random_weight(dtype, 32, depth, 9);
        const std::int64_t block_bytes = dtype_info(dtype).block_bytes;
        for (std::byte* block = weight.data(); block < weight.data() + weight.meta.bytes().number();
             block += block_bytes)
          std::memset(block + first, weight_byte, static_cast<std::size_t>(count));
        Activations x = random_activations(4, depth, 10);
        std::memset(x.codes.data(), code, static_cast<std::size_t>(4 * depth));
        for (const std::string& ceiling : cpu_features_to_try()) {
          SCOPED_TRACE(fmt::format("{} {} codes {:02x} {}", dtype_text(dtype), ceiling, weight_byte, code));
          LinearFamily family(ceiling, 1);
          expect_bits(run(family, x, family.pack(weight)).as<float>(), defined_results(x, weight));
        }
      }
    }
  }
}

// Sums so close to the middle of two f32 that rounding them to f64 first would give the wrong one. Group 0 gives f =
// s0; group 1 adds m * s1 with m * s1 = 2^-24 (1 + 2^-30), then 2^-24 (1 - 2^-33).
TEST(CpuLinearInt8, RoundsEachMultiplyAddOnce) {
  struct Case {
    float first;            // s0
    std::uint16_t minimum;  // m as f16
    float second;           // s1
    float result;
  };
  const Case cases[] = {{1.0f, 0x3c01, std::ldexp(1047553.0f, -44), 1.0f + 0x1p-23f},
                        {1.0f + 0x1p-23f, 0x3fff, std::ldexp(4196353.0f, -47), 1.0f + 0x1p-23f}};
  for (const Case& one : cases) {
    for (const float sign : {1.0f, -1.0f}) {
      // Columns are [d, m, codes]: {1, 0, 1 then zeros}, {1, m, zeros}.
      Tensor weight = Tensor::empty(Meta::tensor(DType::q4_1, {32, 64}));
      for (int column = 0; column < 32; ++column) {
        const std::uint16_t scales[2][2] = {{0x3c00, 0}, {0x3c00, one.minimum}};
        for (int group = 0; group < 2; ++group) std::memcpy(weight.data() + column * 40 + group * 20, scales[group], 4);
        weight.data()[column * 40 + 4] = std::byte{1};
      }
      Activations x{Tensor::empty(Meta::tensor(DType::i8, {1, 64})), Tensor::empty(Meta::tensor(DType::f32, {1, 2}))};
      x.codes.as<std::int8_t>()[0] = x.codes.as<std::int8_t>()[32] = 1;
      x.scale.as<float>()[0] = sign * one.first;
      x.scale.as<float>()[1] = sign * one.second;
      ASSERT_EQ(defined_results(x, weight)[0], sign * one.result);
      for (const std::string& ceiling : cpu_features_to_try()) {
        SCOPED_TRACE(ceiling);
        LinearFamily family(ceiling, 1);
        expect_bits(run(family, x, family.pack(weight)).as<float>(), defined_results(x, weight));
      }
    }
  }
}

TEST(CpuLinearInt8, RoundsOnceToSixteenBits) {
  const Tensor weight = random_weight(DType::q4_1, 45, 64, 11);
  const Activations x = random_activations(7, 64, 12);
  const std::vector<float> wide = defined_results(x, weight);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> wanted(wide.size());
    convert_row(DType::f32, reinterpret_cast<const std::byte*>(wide.data()), dtype,
                reinterpret_cast<std::byte*>(wanted.data()), static_cast<std::int64_t>(wide.size()));
    for (const std::string& ceiling : cpu_features_to_try()) {
      LinearFamily family(ceiling, 2);
      const Tensor result = run(family, x, family.pack(weight), dtype);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_EQ(result.as<std::uint16_t>()[i], wanted[i]) << dtype_text(dtype) << " of " << wide[i];
    }
  }
}

TEST(CpuLinearInt8, ReadsRowsThatLieApart) {
  const Tensor weight = random_weight(DType::q4_0, 40, 64, 13);
  const Activations x = random_activations(5, 64, 14);
  Activations apart{Tensor::empty(Meta::tensor(DType::i8, {5, 100})), Tensor::empty(Meta::tensor(DType::f32, {5, 3}))};
  for (int row = 0; row < 5; ++row) {
    std::memcpy(apart.codes.data() + row * 100, x.codes.data() + row * 64, 64);
    std::memcpy(apart.scale.data() + row * 12, x.scale.data() + row * 8, 8);
  }
  apart.codes.meta = Meta::strided(DType::i8, {5, 64}, {100, 1});
  apart.scale.meta = Meta::strided(DType::f32, {5, 2}, {3, 1});
  LinearFamily family("", 1);
  expect_bits(run(family, apart, family.pack(weight)).as<float>(), defined_results(x, weight));
}

TEST(CpuLinearInt8, AcceptsNoRows) {
  const Tensor weight = random_weight(DType::q4_0, 40, 64, 13);
  LinearFamily family("", 2);
  run(family, random_activations(0, 64, 1), family.pack(weight));
}

TEST(CpuLinearInt8, RefusesWithAReason) {
  LinearFamily family("", 1);
  const Activations x = random_activations(2, 64, 15);
  const Meta result = Meta::tensor(DType::f32, {2, 32});
  const Attributes attributes = {{"dtype", DType::f32}};
  const auto reason = [&](const Tensor& weight, const Meta& to) {
    return family.supports("linear_int8", {x.codes, x.scale, weight}, attributes, to).reason();
  };
  EXPECT_EQ(reason(random_floats(DType::f32, {32, 64}, 1), result), "f32 is not a block type");
  EXPECT_EQ(reason(random_weight(DType::nf4g64, 32, 64, 1), result), "the codes of nf4g64 are not integers");
  EXPECT_EQ(reason(random_weight(DType::q8_0, 32, 64, 1), Meta::tensor(DType::f64, {2, 32})), "no rounding to f64");
  Tensor foreign = random_weight(DType::q8_0, 32, 64, 1);
  foreign.meta.packed = "q4x32";
  EXPECT_EQ(reason(foreign, result), "packing q4x32 is not q8x32");
}

// The skeleton for 16 lanes, 32-bit dots and other features that this host may not have, with vectors made of loops.
TEST(CpuLinearInt8, GivesTheDefinedBitsOnEmulatedVectors) {
  for (const cpu::LinearInt8Variant* variant : {&cpu::kLinearInt8EmulatedPairs, &cpu::kLinearInt8EmulatedDots}) {
    LinearFamily family("", 1);
    family.run_with([variant](const KernelCall& call) { cpu::run_linear_int8(*variant, call); });
    for (const DType dtype : integer_block_types()) {
      const std::int64_t depth = whole_blocks(dtype, 96);
      const Tensor weight = random_weight(dtype, 33, depth, 16);
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 8, 9, 13, 23}) {
        SCOPED_TRACE(fmt::format("{} rows {}", dtype_text(dtype), rows));
        const Activations x = random_activations(rows, depth, 17);
        expect_bits(run(family, x, family.pack(weight)).as<float>(), defined_results(x, weight));
      }
    }
  }
}

// Blocks of groups and of rows, and what is left of them; with emulated tiles and with those of the host.
TEST(CpuLinearInt8, GivesTheDefinedBitsOnTiles) {
  cpu::LinearInt8Variant variant = cpu::kLinearInt8EmulatedDots;
  variant.tile_panel = cpu::kInt8TilePanelEmulated;
  LinearFamily emulated("", 1), host("", 2);
  emulated.run_with([variant](const KernelCall& call) { cpu::run_linear_int8(variant, call); });
  for (const DType dtype : integer_block_types()) {
    for (const std::int64_t wanted_depth : {96, 1120}) {
      const std::int64_t depth = whole_blocks(dtype, wanted_depth);
      const Tensor weight = random_weight(dtype, 40, depth, 18);
      for (const std::int64_t rows : {32, 77, 290}) {
        if (rows == 290 && wanted_depth > 96) continue;
        const Activations x = random_activations(rows, depth, 19);
        const std::vector<float> wanted = defined_results(x, weight);
        SCOPED_TRACE(fmt::format("{} rows {}", weight.meta.text(), rows));
        expect_bits(run(host, x, host.pack(weight)).as<float>(), wanted);
        if (rows <= 77) expect_bits(run(emulated, x, emulated.pack(weight)).as<float>(), wanted);
      }
    }
  }
}

}  // namespace weft::cpu_linear_int8_test
