// The conversions that device code writes out, compared with the number formats of the program.

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cuda/device/codes.cuh"
#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/device/group_quantization.cuh"
#include "tensor/float4.h"
#include "tests/tensor/random_source.h"

namespace weft::number_formats_test {

// Every upper half of a float, with lower halves that decide roundings.
template <class Body>
void for_each_float(Body body) {
  for (std::uint32_t upper = 0; upper < 0x10000u; ++upper)
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      body(std::bit_cast<float>(upper << 16 | lower));
}

TEST(CudaNumberFormats, MakeTheProgramsCodesOfFp8) {
  for_each_float([](float x) {
    const std::uint32_t code = cuda::Fp8::code(x);
    ASSERT_EQ(code, f32_to_f8e4m3(x)) << x;
  });
  for (std::uint32_t code = 0; code < 0x7fu; ++code)
    EXPECT_EQ(cuda::number_of_fp8(code), f8e4m3_to_f32(static_cast<std::uint8_t>(code)));
  EXPECT_TRUE(std::isnan(cuda::number_of_fp8(0x7f)));
}

TEST(CudaNumberFormats, MakeTheProgramsCodesOfFp4) {
  for_each_float([](float x) { ASSERT_EQ(cuda::fp4_code(x), f32_to_f4e2m1(x)) << x; });
}

TEST(CudaNumberFormats, MakeInt8CodesToNearestEvenAndZeroOfNan) {
  for_each_float([](float x) {
    const float values[4] = {x, -x, 0.5f, 1.5f};
    const std::uint32_t word = cuda::Int8::pack(values, false);
    const float held = std::isnan(x) ? 0.0f : std::fmin(std::fmax(std::nearbyint(x), -128.0f), 127.0f);
    ASSERT_EQ(static_cast<std::int8_t>(word & 0xffu), static_cast<int>(held)) << x;
    ASSERT_EQ(word >> 16, 0x0200u) << "0 and 2";
    if (std::fabs(x) < cuda::Int8::kSafe) {
      ASSERT_EQ(cuda::Int8::pack(values, true), word) << x;
    }
  });
}

TEST(CudaNumberFormats, DivideAsIeeeDoesWhereTheScaleIsOrdinary) {
  RandomSource random(11);
  for (int i = 0; i < 2000000; ++i) {
    const auto any = static_cast<std::uint32_t>(random.bits());
    const float scale =
        std::bit_cast<float>((any & 0x7fffffu) | static_cast<std::uint32_t>(random.integer(67, 187)) << 23);
    const float quotient = static_cast<float>(random.real(-1000, 1000));
    const float x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(quotient * scale) ^ (any >> 30));
    ASSERT_EQ(cuda::corrected_quotient(x, scale, 1.0f / scale), x / scale) << x << " by " << scale;
  }
  EXPECT_TRUE(std::signbit(cuda::corrected_quotient(-0.0f, 3.0f, 1.0f / 3.0f)));
}

TEST(CudaNumberFormats, RoundUpToPowersOfTwo) {
  for_each_float([](float x) {
    if (std::signbit(x)) return;
    const float power = cuda::power_of_two_above(x);
    if (std::isnan(x) || std::isinf(x) || x == 0) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(power), std::bit_cast<std::uint32_t>(x));
      return;
    }
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    ASSERT_EQ(power, std::ldexp(1.0f, mantissa == 0.5f ? exponent - 1 : exponent)) << x;
  });
}

TEST(CudaNumberFormats, RoundProductsOfPairsOnce) {
  RandomSource random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto x = static_cast<std::uint32_t>(random.bits()), y = static_cast<std::uint32_t>(random.bits());
    float a[2], b[2], brain[2], half[2];
    cuda::unpack(x, a[0], a[1], cuda::Brain{});
    cuda::unpack(y, b[0], b[1], cuda::Brain{});
    cuda::unpack(cuda::multiply_pairs(x, y, cuda::Brain{}), brain[0], brain[1], cuda::Brain{});
    for (int j = 0; j < 2; ++j) {
      const float product = a[j] * b[j];
      if (!std::isnormal(product)) continue;  // rounded twice by the host
      ASSERT_EQ(brain[j], bf16_to_f32(f32_to_bf16(product)));
    }
    cuda::unpack(x, a[0], a[1], cuda::Half{});
    cuda::unpack(y, b[0], b[1], cuda::Half{});
    cuda::unpack(cuda::multiply_pairs(x, y, cuda::Half{}), half[0], half[1], cuda::Half{});
    for (int j = 0; j < 2; ++j) {
      if (std::isnan(a[j] * b[j])) continue;
      ASSERT_EQ(half[j], f16_to_f32(f32_to_f16(a[j] * b[j])));
    }
  }
}

}  // namespace weft::number_formats_test
