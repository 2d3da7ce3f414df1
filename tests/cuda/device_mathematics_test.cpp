// Kernels as on a GPU, with its own functions and order of sums, compared with those with reference math.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "emulator/approximation.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/device/silu.cuh"
#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/group_launch.h"
#include "tensor/convert.h"
#include "tests/tensor/random_source.h"

namespace weft::device_mathematics_test {

using namespace cuda;

constexpr std::uint32_t kRows = 3, kColumns = 2304;

std::vector<std::byte> random_numbers(DType dtype, std::size_t count, std::uint64_t seed) {
  RandomSource random(seed);
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(dtype_info(dtype).block_bytes));
  for (std::size_t i = 0; i < count; ++i)
    store_float(dtype, bytes.data(), static_cast<std::int64_t>(i), static_cast<float>(random.real(-3, 3)));
  return bytes;
}

std::int64_t step_of_codes(std::byte a, std::byte b, bool is_int8) {
  const auto place = [&](std::byte code) {
    const int value = std::to_integer<int>(code);
    if (is_int8) return static_cast<int>(static_cast<std::int8_t>(value));
    return (value & 0x80) != 0 ? -(value & 0x7f) : value & 0x7f;
  };
  return std::abs(place(a) - place(b));
}

// The data that one kernel writes: its output, and scales if it has any.
struct Written {
  std::vector<std::byte> output;
  std::vector<float> scales;
};

Written normalized(const std::string& kernel, DType dtype, std::size_t output_bytes) {
  const std::vector<std::byte> x = random_numbers(dtype, kRows * kColumns, 1);
  const std::vector<std::byte> residual = random_numbers(dtype, kRows * kColumns, 2);
  const std::vector<std::byte> weight = random_numbers(dtype, kColumns, 3);
  std::vector<std::byte> sums(x.size());
  Written written{.output = std::vector<std::byte>(output_bytes), .scales = std::vector<float>(kRows * kColumns / 128)};
  const float given = 0.01f;
  const bool is_of_token = kernel.find("token") != std::string::npos;
  const bool is_int8_of_token = kernel.find("token_i8") != std::string::npos;
  const RmsNormArguments arguments{.x = x.data(),
                                   .residual = residual.data(),
                                   .residual_output = sums.data(),
                                   .weight = weight.data(),
                                   .output = written.output.data(),
                                   .places = {written.scales.data(), is_of_token ? 1 : kColumns / 128, 1},
                                   .rule = {.codes_by_reciprocal = is_int8_of_token},
                                   .given_scale = &given,
                                   .epsilon = 1e-6f,
                                   .columns = kColumns,
                                   .variance_columns = kColumns,
                                   .group = 128};
  MemoryMap memory;
  memory.allow_reading("x", x.data(), x.size());
  memory.allow_reading("residual", residual.data(), residual.size());
  memory.allow_reading("weight", weight.data(), weight.size());
  memory.allow_reading("scale", &given, sizeof given);
  memory.allow_writing("sums", sums.data(), sums.size());
  memory.allow_writing("output", written.output.data(), written.output.size());
  memory.allow_writing("scales", written.scales.data(), written.scales.size() * sizeof(float));
  Emulator({.order = ThreadOrder::random})
      .run(emulated_kernel(kernel), {.blocks = kRows, .threads = 256}, &arguments, memory);
  return written;
}

TEST(DeviceMathematics, NormalizesWithinTheLastPlacesOfTheReference) {
  for (const std::string front : {"rms_norm", "fused_add_rms_norm"}) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const std::string kernel = fmt::format("{}_{}_plain_", front, dtype_text(dtype));
      const std::size_t bytes = kRows * kColumns * static_cast<std::size_t>(dtype_info(dtype).block_bytes);
      const Written reference = normalized(kernel + "reference", dtype, bytes);
      const Written device = normalized(kernel + "device", dtype, bytes);
      // Two roundings apart at most: of the norm and of the product.
      const float step = dtype == DType::bf16 ? 0x1p-6f : dtype == DType::f16 ? 0x1p-9f : 0x1p-20f;
      for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        const float wanted = load_float(dtype, reference.output.data(), i);
        EXPECT_NEAR(load_float(dtype, device.output.data(), i), wanted, std::abs(wanted) * step) << kernel << i;
      }
    }
  }
}

TEST(DeviceMathematics, GivesCodesOneStepFromTheReferences) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const std::string epilogue : {"static_f8e4m3", "token_f8e4m3", "token_i8", "group_f8e4m3", "group_i8"}) {
      const std::string kernel = fmt::format("fused_add_rms_norm_{}_{}_", dtype_text(dtype), epilogue);
      const Written reference = normalized(kernel + "reference", dtype, kRows * kColumns);
      const Written device = normalized(kernel + "device", dtype, kRows * kColumns);
      std::int64_t differing = 0;
      for (std::size_t i = 0; i < reference.output.size(); ++i) {
        const std::int64_t step = step_of_codes(reference.output[i], device.output[i], epilogue.ends_with("i8"));
        EXPECT_LE(step, 1) << kernel << i;
        differing += step;
      }
      EXPECT_LT(differing, kRows * kColumns / 20) << kernel;
    }
  }
}

std::vector<std::byte> gated(const std::string& kernel, DType dtype, std::size_t output_bytes) {
  const std::vector<std::byte> x = random_numbers(dtype, 2 * kRows * kColumns, 4);
  std::vector<std::byte> output(output_bytes), group_scales(kRows * kColumns / 16);
  const float scale = 100;
  const std::uint32_t of_block = 256 * 16 / static_cast<std::uint32_t>(dtype_info(dtype).block_bytes);
  const SiluAndMulArguments arguments{.x = x.data(),
                                      .output = output.data(),
                                      .scale = &scale,
                                      .group_scales = reinterpret_cast<std::uint8_t*>(group_scales.data()),
                                      .rows = kRows,
                                      .columns = kColumns,
                                      .slices = divisor_of((kColumns + of_block - 1) / of_block)};
  MemoryMap memory;
  memory.allow_reading("x", x.data(), x.size());
  memory.allow_reading("scale", &scale, sizeof scale);
  memory.allow_writing("output", output.data(), output.size());
  memory.allow_writing("group scales", group_scales.data(), group_scales.size());
  const LaunchShape shape{.blocks = kRows * arguments.slices.divisor, .threads = 256};
  Emulator().run(emulated_kernel(kernel), shape, &arguments, memory);
  EXPECT_EQ(memory.unwritten("output"), 0u) << kernel;
  return output;
}

TEST(DeviceMathematics, GatesWithinTheBoundsOfTheDevicesFunctions) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const std::string kernel = fmt::format("silu_and_mul_{}_", dtype_text(dtype));
    const std::size_t bytes = kRows * kColumns * static_cast<std::size_t>(dtype_info(dtype).block_bytes);
    const std::vector<std::byte> reference = gated(kernel + "plain_reference", dtype, bytes);
    const std::vector<std::byte> codes = gated(kernel + "static_f8e4m3_rounded_reference", dtype, kRows * kColumns);
    for (const Approximation approximation :
         {Approximation::exact, Approximation::upwards, Approximation::downwards, Approximation::scattered}) {
      current_approximation = approximation;
      const std::vector<std::byte> device = gated(kernel + "plain_device", dtype, bytes);
      const std::vector<std::byte> device_codes =
          gated(kernel + "static_f8e4m3_rounded_device", dtype, kRows * kColumns);
      current_approximation = Approximation::exact;
      const float step = dtype == DType::bf16 ? 0x1p-6f : dtype == DType::f16 ? 0x1p-9f : 0x1p-19f;
      for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        const float wanted = load_float(dtype, reference.data(), i);
        EXPECT_NEAR(load_float(dtype, device.data(), i), wanted, std::abs(wanted) * step + 1e-7f) << kernel << i;
        EXPECT_LE(step_of_codes(codes[static_cast<std::size_t>(i)], device_codes[static_cast<std::size_t>(i)], false),
                  1)
            << kernel << i;
      }
    }
  }
}

// For any error of the device's functions within their bounds.
TEST(DeviceMathematics, SiluStaysWithinItsBounds) {
  for (const Approximation approximation :
       {Approximation::exact, Approximation::upwards, Approximation::downwards, Approximation::scattered}) {
    current_approximation = approximation;
    for (int i = -80'000; i <= 80'000; ++i) {
      const float x = static_cast<float>(i) * 0.000999f;
      const double exact = x / (1 + std::exp(-static_cast<double>(x)));
      const double unit = std::ldexp(1.0, std::ilogb(exact == 0 ? 1.0 : exact) - 23);
      EXPECT_LE(std::abs(cuda::DeviceMathematics::silu<true>(x) - exact), 8 * unit) << x;
      EXPECT_LE(std::abs(cuda::DeviceMathematics::silu<false>(x) - exact), std::abs(exact) * 0x1p-17) << x;
    }
  }
  current_approximation = Approximation::exact;
  EXPECT_EQ(cuda::DeviceMathematics::silu<true>(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(cuda::DeviceMathematics::silu<true>(NAN)));
}

}  // namespace weft::device_mathematics_test
