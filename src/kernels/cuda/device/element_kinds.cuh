#pragma once

// Elements whose type is known at run time, for small parts of the data such as tables and KV pages, so that kernels
// need not be compiled for each type.

#include <type_traits>

#include "kernels/cuda/device/elements.cuh"

namespace weft::cuda {

template <class T>
constexpr ElementKind kKindOf = ElementKind::f32;
template <>
constexpr ElementKind kKindOf<Half> = ElementKind::f16;
template <>
constexpr ElementKind kKindOf<Brain> = ElementKind::bf16;

WEFT_DEVICE void unpack(std::uint32_t word, ElementKind kind, float& first, float& second) {
  if (kind == ElementKind::f16) {
    unpack(word, first, second, Half{});
  } else {
    unpack(word, first, second, Brain{});
  }
}
WEFT_DEVICE std::uint32_t pack(ElementKind kind, float first, float second) {
  return kind == ElementKind::f16 ? pack(first, second, Half{}) : pack(first, second, Brain{});
}

// `count` words, 1, 2 or 4, in one access.
template <int count>
WEFT_DEVICE void load_words(const void* from, std::uint32_t* words WEFT_SITE) {
  if constexpr (count == 1) {
    words[0] = load(static_cast<const std::uint32_t*>(from) WEFT_PASS_SITE);
  } else {
    using Words = std::conditional_t<count == 2, TwoWords, FourWords>;
    const Words loaded = load(static_cast<const Words*>(from) WEFT_PASS_SITE);
    WEFT_UNROLL
    for (int i = 0; i < count; ++i) words[i] = loaded.word[i];
  }
}

// 1, 2, 4 or 8 elements of a type that is known at run time, in accesses of at most 16 bytes. The first element must be
// aligned to such an access.
template <int count>
constexpr int kWordsOfAccess = count < 4 ? count : 4;
template <int count>
WEFT_DEVICE void load_elements(const void* from, std::uint64_t place, ElementKind kind, float* values WEFT_SITE) {
  if (kind == ElementKind::f32) {
    constexpr int kOfAccess = kWordsOfAccess<count>;
    WEFT_UNROLL
    for (int i = 0; i < count; i += kOfAccess) {
      std::uint32_t words[kOfAccess];
      load_words<kOfAccess>(static_cast<const float*>(from) + place + i, words WEFT_PASS_SITE);
      WEFT_UNROLL
      for (int j = 0; j < kOfAccess; ++j) values[i + j] = float_of(words[j]);
    }
    return;
  }
  const auto* codes = static_cast<const std::uint16_t*>(from) + place;
  if constexpr (count == 1) {
    float none;
    unpack(load(codes WEFT_PASS_SITE), kind, values[0], none);
  } else {
    std::uint32_t words[count / 2];
    load_words<count / 2>(codes, words WEFT_PASS_SITE);
    WEFT_UNROLL
    for (int i = 0; i < count / 2; ++i) unpack(words[i], kind, values[2 * i], values[2 * i + 1]);
  }
}
WEFT_DEVICE float load_element(const void* from, std::uint64_t place, ElementKind kind WEFT_SITE) {
  float value;
  load_elements<1>(from, place, kind, &value WEFT_PASS_SITE);
  return value;
}

template <int count>
WEFT_DEVICE void store_elements(void* to, std::uint64_t place, ElementKind kind, const float* values WEFT_SITE) {
  if (kind == ElementKind::f32) {
    constexpr int kOfAccess = kWordsOfAccess<count>;
    WEFT_UNROLL
    for (int i = 0; i < count; i += kOfAccess) {
      std::uint32_t words[kOfAccess];
      WEFT_UNROLL
      for (int j = 0; j < kOfAccess; ++j) words[j] = bits_of(values[i + j]);
      store_words<kOfAccess>(static_cast<float*>(to) + place + i, words WEFT_PASS_SITE);
    }
    return;
  }
  std::uint32_t words[count / 2];
  WEFT_UNROLL
  for (int i = 0; i < count / 2; ++i) words[i] = pack(kind, values[2 * i], values[2 * i + 1]);
  store_words<count / 2>(static_cast<std::uint16_t*>(to) + place, words WEFT_PASS_SITE);
}
// Each element is `stride` elements after the previous one.
template <int count>
WEFT_DEVICE void scatter_elements(void* to, std::uint64_t place, std::uint32_t stride, ElementKind kind,
                                  const float* values WEFT_SITE) {
  WEFT_UNROLL
  for (int i = 0; i < count; i += 2) {
    if (kind == ElementKind::f32) {
      auto* words = static_cast<std::uint32_t*>(to) + place;
      store(words, bits_of(values[i]) WEFT_PASS_SITE);
      store(words + stride, bits_of(values[i + 1]) WEFT_PASS_SITE);
    } else {
      auto* codes = static_cast<std::uint16_t*>(to) + place;
      const std::uint32_t word = pack(kind, values[i], values[i + 1]);
      store(codes, static_cast<std::uint16_t>(word) WEFT_PASS_SITE);
      store(codes + stride, static_cast<std::uint16_t>(word >> 16) WEFT_PASS_SITE);
    }
    place += 2 * std::uint64_t{stride};
  }
}

}  // namespace weft::cuda
