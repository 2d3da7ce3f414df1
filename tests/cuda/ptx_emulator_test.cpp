// Each CUDA kernel as compiled by nvcc, compared with the same kernel in the emulator, with the device's mathematics
// and with reference math: on the same numbers, none of them a NaN, they write the same bytes.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "emulator/approximation.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"
#include "tensor/convert.h"
#include "tests/cuda/ptx/built_ptx.h"
#include "tests/tensor/random_source.h"

namespace weft::ptx_emulator_test {

using namespace cuda;
using namespace ptx;

class PtxBesideEmulator : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = absence_of_ptx(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

constexpr DType kTypes[] = {DType::bf16, DType::f16, DType::f32};

std::vector<std::byte> random_numbers(DType dtype, std::size_t count, std::uint64_t seed) {
  RandomSource random(seed);
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(dtype_info(dtype).block_bytes));
  for (std::size_t i = 0; i < count; ++i) {
    float value = static_cast<float>(random.real(-4, 4)) * std::ldexp(1.0f, static_cast<int>(random.integer(-6, 3)));
    const std::int64_t kind = random.integer(0, 300);
    if (kind == 0) value = -0.0f;
    if (kind == 1) value = 1e-39f;
    if (kind == 2) value = -100;
    store_float(dtype, bytes.data(), static_cast<std::int64_t>(i), value);
  }
  return bytes;
}

// The data that a launch writes, in either of the two.
struct Buffers {
  std::vector<std::byte> output, sums;
  std::vector<float> scales;
};
using Bytes = std::vector<std::byte>;

// Runs one launch in both. `point` sets the addresses of written memory in the arguments.
template <class Arguments, class Point>
void expect_equal(BuiltPtx& built, const std::string& kernel, const LaunchShape& shape, Arguments arguments,
                  const std::vector<std::pair<const void*, std::size_t>>& read, const Buffers& sizes, Point point) {
  Buffers written[2] = {sizes, sizes};
  for (const bool is_ptx : {false, true}) {
    Buffers& to = written[is_ptx ? 1 : 0];
    point(arguments, to);
    MemoryMap memory;
    for (const auto& [from, bytes] : read) memory.allow_reading("an operand", from, bytes);
    memory.allow_writing("output", to.output.data(), to.output.size());
    memory.allow_writing("sums", to.sums.data(), to.sums.size());
    memory.allow_writing("scales", to.scales.data(), to.scales.size() * sizeof(float));
    if (is_ptx) {
      built.run(kernel, shape, &arguments, sizeof arguments, memory);
    } else {
      Emulator().run(emulated_kernel(kernel), shape, &arguments, memory);
    }
  }
  EXPECT_TRUE(written[0].output == written[1].output) << kernel;
  EXPECT_TRUE(written[0].sums == written[1].sums) << kernel;
  EXPECT_TRUE(written[0].scales == written[1].scales) << kernel;
}

void silu_and_quantize(BuiltPtx& built, const SiluAndMulPerBlockQuant& kernel, const Bytes& x) {
  constexpr std::uint32_t kRows = 3, kColumns = 384;
  const std::size_t groups = kColumns / static_cast<std::size_t>(kernel.group_size);
  SiluAndMulPerBlockQuantArguments arguments{.x = x.data(),
                                             .places = {nullptr, static_cast<std::uint32_t>(groups), 1},
                                             .rule = {.least_scale = 1.0f / (448 * 512)},
                                             .rows = kRows,
                                             .columns = kColumns};
  const Buffers sizes{.output = Bytes(kRows * kColumns), .scales = std::vector<float>(kRows * groups)};
  // Places are planned once, for addresses that are as aligned as those used.
  Buffers planned = sizes;
  arguments.codes = planned.output.data();
  arguments.places.scales = planned.scales.data();
  const LaunchShape shape = kernel.plan(arguments);
  expect_equal(built, kernel.kernel_name(), shape, arguments, {{x.data(), x.size()}}, sizes,
               [](SiluAndMulPerBlockQuantArguments& to, Buffers& buffers) {
                 to.codes = buffers.output.data();
                 to.places.scales = buffers.scales.data();
               });
}

TEST_F(PtxBesideEmulator, SiluAndMulPerBlockQuantInAllItsForms) {
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    for (const DType dtype : kTypes) {
      const Bytes x = random_numbers(dtype, 3 * 2 * 384, 1);
      for (const DType codes : {DType::f8e4m3, DType::i8})
        for (const std::int64_t group : {32, 64, 128})
          for (const bool rounds : {false, true})
            for (const SiluAndMulDesign design : {SiluAndMulDesign::fast, SiluAndMulDesign::tree})
              for (const Mathematics mathematics : {Mathematics::device, Mathematics::reference}) {
                const SiluAndMulPerBlockQuant kernel{dtype, codes, group, rounds, design, mathematics};
                if (!kernel.takes_group()) continue;
                silu_and_quantize(built, kernel, x);
                SiluAndMulPerBlockQuant truncating = kernel;
                truncating.truncates = codes == DType::i8 && rounds && design == SiluAndMulDesign::fast;
                if (truncating.truncates) silu_and_quantize(built, truncating, x);
              }
    }
    EXPECT_GE(built.used().size(), 100u);
  }
}

TEST_F(PtxBesideEmulator, NormsWithEveryEpilogue) {
  constexpr std::uint32_t kRows = 2, kColumns = 1152;
  const float given = 0.01f;
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    for (const DType dtype : kTypes) {
      const Bytes x = random_numbers(dtype, kRows * kColumns, 1), residual = random_numbers(dtype, kRows * kColumns, 2);
      const Bytes weight = random_numbers(dtype, kColumns, 3);
      for (const std::string front : {"rms_norm", "fused_add_rms_norm"})
        for (const std::string epilogue :
             {"plain", "static_f8e4m3", "token_f8e4m3", "token_i8", "group_f8e4m3", "group_i8", "group_i8_truncated"})
          for (const std::string mathematics : {"device", "reference"}) {
            const std::string kernel = fmt::format("{}_{}_{}_{}", front, dtype_text(dtype), epilogue, mathematics);
            const RmsNormArguments arguments{.x = x.data(),
                                             .residual = residual.data(),
                                             .weight = weight.data(),
                                             .places = {nullptr, epilogue.starts_with("token") ? 1 : kColumns / 128, 1},
                                             .rule = {.codes_by_reciprocal = epilogue == "token_i8"},
                                             .given_scale = &given,
                                             .epsilon = 1e-6f,
                                             .columns = kColumns,
                                             .variance_columns = kColumns,
                                             .group = 128};
            const Buffers sizes{.output = Bytes(epilogue == "plain" ? x.size() : kRows * kColumns),
                                .sums = Bytes(x.size()),
                                .scales = std::vector<float>(kRows * kColumns / 128)};
            expect_equal(built, kernel, {.blocks = kRows, .threads = 256}, arguments,
                         {{x.data(), x.size()},
                          {residual.data(), residual.size()},
                          {weight.data(), weight.size()},
                          {&given, sizeof given}},
                         sizes, [](RmsNormArguments& to, Buffers& buffers) {
                           to.output = buffers.output.data();
                           to.residual_output = buffers.sums.data();
                           to.places.scales = buffers.scales.data();
                         });
          }
    }
  }
}

TEST_F(PtxBesideEmulator, SiluAndMulWithEveryEpilogue) {
  constexpr std::uint32_t kRows = 2, kColumns = 320;
  const float scale = 100;
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    for (const DType dtype : kTypes) {
      const Bytes x = random_numbers(dtype, 2 * kRows * kColumns, 4);
      for (const std::string epilogue :
           {"plain", "static_f8e4m3_wide", "static_f8e4m3_rounded", "f4e2m1_wide", "f4e2m1_rounded"})
        for (const std::string mathematics : {"device", "reference"}) {
          const SiluAndMulArguments arguments{
              .x = x.data(), .scale = &scale, .rows = kRows, .columns = kColumns, .slices = divisor_of(1)};
          const Buffers sizes{.output = Bytes(x.size() / 2), .sums = Bytes(kRows * kColumns / 16)};
          expect_equal(built, fmt::format("silu_and_mul_{}_{}_{}", dtype_text(dtype), epilogue, mathematics),
                       {.blocks = kRows, .threads = 256}, arguments, {{x.data(), x.size()}, {&scale, sizeof scale}},
                       sizes, [](SiluAndMulArguments& to, Buffers& buffers) {
                         to.output = buffers.output.data();
                         to.group_scales = reinterpret_cast<std::uint8_t*>(buffers.sums.data());
                       });
        }
    }
  }
}

TEST_F(PtxBesideEmulator, QuantizationPerGroup) {
  constexpr std::uint32_t kRows = 3, kColumns = 384;
  const float bound = 0.01f;
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    for (const DType dtype : kTypes) {
      const Bytes x = random_numbers(dtype, kRows * kColumns, 6);
      for (const std::string codes : {"f8e4m3", "i8", "i8_truncated"})
        for (const std::uint32_t group : {32, 64, 128}) {
          PerTokenGroupQuantArguments arguments{.x = x.data(),
                                                .places = {nullptr, 1, kRows},
                                                .rule = {.bound = group == 32 ? nullptr : &bound,
                                                         .least_magnitude = 1e-10f,
                                                         .bounds_magnitude = group == 64,
                                                         .by_reciprocal = group == 64},
                                                .rows = kRows,
                                                .columns = kColumns};
          const LaunchShape shape =
              plan_groups("per_token_group_quant", {.rows = kRows, .groups = kColumns / group, .group_size = group},
                          arguments.places, arguments.order);
          const Buffers sizes{.output = Bytes(kRows * kColumns),
                              .scales = std::vector<float>(kRows * kColumns / group)};
          expect_equal(built, fmt::format("per_token_group_quant_{}_{}_{}", dtype_text(dtype), codes, group), shape,
                       arguments, {{x.data(), x.size()}, {&bound, sizeof bound}}, sizes,
                       [](PerTokenGroupQuantArguments& to, Buffers& buffers) {
                         to.codes = buffers.output.data();
                         to.places.scales = buffers.scales.data();
                       });
        }
    }
  }
}

// Rows of one iteration of the block, of several and of a part of one; a row of zeros.
TEST_F(PtxBesideEmulator, QuantizationPerToken) {
  constexpr std::uint32_t kRows = 3;
  const float bound = 2.5f;
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    for (const DType dtype : kTypes)
      for (const std::uint32_t columns : {64u, 2048u, 4224u}) {
        Bytes x = random_numbers(dtype, kRows * columns, 7);
        std::fill_n(x.begin(), x.size() / kRows, std::byte{0});
        for (const std::string codes : {"f8e4m3", "i8"})
          for (const bool is_bounded : {false, true}) {
            const GroupRule rule{.bound = is_bounded ? &bound : nullptr,
                                 .least_scale = codes == "i8" ? 0 : 1.0f / (448 * 512),
                                 .by_reciprocal = is_bounded,
                                 .codes_by_reciprocal = codes == "i8" || is_bounded};
            const DynamicPerTokenQuantArguments arguments{
                .x = x.data(), .places = {nullptr, 1, 1}, .rule = rule, .columns = columns};
            const Buffers sizes{.output = Bytes(kRows * columns), .scales = std::vector<float>(kRows)};
            expect_equal(built, fmt::format("dynamic_per_token_quant_{}_{}", dtype_text(dtype), codes),
                         {.blocks = kRows, .threads = 256}, arguments, {{x.data(), x.size()}, {&bound, sizeof bound}},
                         sizes, [](DynamicPerTokenQuantArguments& to, Buffers& buffers) {
                           to.output = buffers.output.data();
                           to.places.scales = buffers.scales.data();
                         });
          }
      }
  }
}

// Reference math divides by the device's approximate reciprocal and corrects it: for any error within its bound, the
// bits are the same.
TEST_F(PtxBesideEmulator, ReferenceMathDoesNotDependOnWhereTheDevicesFunctionsLie) {
  for (const Approximation approximation :
       {Approximation::upwards, Approximation::downwards, Approximation::scattered}) {
    BuiltPtx built(89);
    const Bytes x = random_numbers(DType::bf16, 3 * 2 * 384, 5);
    current_approximation = approximation;
    for (const DType codes : {DType::f8e4m3, DType::i8})
      silu_and_quantize(built, {.codes = codes, .mathematics = Mathematics::reference}, x);
    current_approximation = Approximation::exact;
  }
}

}  // namespace weft::ptx_emulator_test
