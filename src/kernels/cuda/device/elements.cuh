#pragma once

// The element types of activations: conversion of 16 bytes of them to f32 and back.

#include "kernels/cuda/device/arithmetic.cuh"
#include "kernels/cuda/device/memory.cuh"

#if !defined(__CUDACC__)
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#endif

namespace weft::cuda {

struct Brain {
  std::uint16_t code;
};
struct Half {
  std::uint16_t code;
};

// Elements of 16 bytes.
template <class T>
constexpr int kElementsOfLoad = 16 / static_cast<int>(sizeof(T));

// The two elements of a word.
WEFT_DEVICE void unpack(std::uint32_t word, float& first, float& second, Brain) {
  first = float_of(word << 16);
  second = float_of(word & 0xffff0000u);
}
WEFT_DEVICE void unpack(std::uint32_t word, float& first, float& second, Half) {
#if defined(__CUDACC__)
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(first), "=f"(second)
      : "r"(word));
#else
  first = f16_to_f32(static_cast<std::uint16_t>(word));
  second = f16_to_f32(static_cast<std::uint16_t>(word >> 16));
#endif
}

// Two values, each rounded to nearest even.
WEFT_DEVICE std::uint32_t pack(float first, float second, Brain) {
#if defined(__CUDACC__)
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return f32_to_bf16(first) | static_cast<std::uint32_t>(f32_to_bf16(second)) << 16;
#endif
}
WEFT_DEVICE std::uint32_t pack(float first, float second, Half) {
#if defined(__CUDACC__)
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return f32_to_f16(first) | static_cast<std::uint32_t>(f32_to_f16(second)) << 16;
#endif
}

// The products of two pairs, each rounded once. sm_80 has no product for Brain; adding -0 in a multiply-add gives the
// same, also if the product is -0.
WEFT_DEVICE std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y, Brain) {
#if defined(__CUDACC__)
  std::uint32_t product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(x), "r"(y), "r"(0x80008000u));
  return product;
#else
  const auto one = [](std::uint32_t a, std::uint32_t b) {
    const double exact = static_cast<double>(float_of(a << 16)) * static_cast<double>(float_of(b << 16));
    return static_cast<std::uint32_t>(f32_to_bf16(round_to_odd(exact)));
  };
  return one(x & 0xffffu, y & 0xffffu) | one(x >> 16, y >> 16) << 16;
#endif
}
WEFT_DEVICE std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y, Half) {
#if defined(__CUDACC__)
  std::uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(x), "r"(y));
  return product;
#else
  float a[2], b[2];
  unpack(x, a[0], a[1], Half{});
  unpack(y, b[0], b[1], Half{});
  return pack(a[0] * b[0], a[1] * b[1], Half{});
#endif
}

// All elements of 16 bytes.
template <class T>
WEFT_DEVICE void unpack(const FourWords& words, float* values) {
  WEFT_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      values[i] = float_of(words.word[i]);
    } else {
      unpack(words.word[i], values[2 * i], values[2 * i + 1], T{});
    }
  }
}

// Rounds a pair to T.
template <class T>
WEFT_DEVICE void round_pair(float& first, float& second) {
  if constexpr (sizeof(T) == 2) unpack(pack(first, second, T{}), first, second, T{});
}

// The elements of a load, from `place` on.
template <class T>
WEFT_DEVICE void store_as(void* to, std::uint64_t place, const float* values) {
  std::uint32_t words[4];
  WEFT_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      words[i] = bits_of(values[i]);
    } else {
      words[i] = pack(values[2 * i], values[2 * i + 1], T{});
    }
  }
  store_words<4>(static_cast<T*>(to) + place, words);
}

}  // namespace weft::cuda
