#pragma once

// Elements whose type is known at run time: for what is little beside the rest, as tables and KV pages are, so that a
// kernel does not exist once for each type.

#include "kernels/cuda/device/elements.cuh"

namespace weft::cuda {

template <class T>
constexpr ElementKind kKindOf = ElementKind::f32;
template <>
constexpr ElementKind kKindOf<Half> = ElementKind::f16;
template <>
constexpr ElementKind kKindOf<Brain> = ElementKind::bf16;

// One element, or the two from an even `place` on, of a type that is known at run time.
WEFT_DEVICE float load_element(const void* from, std::uint64_t place, ElementKind kind WEFT_SITE) {
  if (kind == ElementKind::f32) return load(static_cast<const float*>(from) + place WEFT_PASS_SITE);
  const std::uint32_t code = load(static_cast<const std::uint16_t*>(from) + place WEFT_PASS_SITE);
  float first, second;
  if (kind == ElementKind::f16) {
    unpack(code, first, second, Half{});
  } else {
    unpack(code, first, second, Brain{});
  }
  return first;
}
WEFT_DEVICE void load_pair(const void* from, std::uint64_t place, ElementKind kind, float* values WEFT_SITE) {
  if (kind == ElementKind::f32) {
    const TwoWords words =
        load(reinterpret_cast<const TwoWords*>(static_cast<const float*>(from) + place) WEFT_PASS_SITE);
    values[0] = float_of(words.word[0]);
    values[1] = float_of(words.word[1]);
    return;
  }
  const auto* codes = static_cast<const std::uint16_t*>(from) + place;
  const std::uint32_t word = load(reinterpret_cast<const std::uint32_t*>(codes) WEFT_PASS_SITE);
  if (kind == ElementKind::f16) {
    unpack(word, values[0], values[1], Half{});
  } else {
    unpack(word, values[0], values[1], Brain{});
  }
}

// The words of two values: of 16-bit elements one, and the second is 0.
WEFT_DEVICE TwoWords words_of_pair(const float* values, ElementKind kind) {
  if (kind == ElementKind::f32) return {bits_of(values[0]), bits_of(values[1])};
  return {kind == ElementKind::f16 ? pack(values[0], values[1], Half{}) : pack(values[0], values[1], Brain{}), 0u};
}
WEFT_DEVICE void store_pair(void* to, std::uint64_t place, ElementKind kind, const float* values WEFT_SITE) {
  const TwoWords words = words_of_pair(values, kind);
  if (kind == ElementKind::f32) {
    store(reinterpret_cast<TwoWords*>(static_cast<float*>(to) + place), words WEFT_PASS_SITE);
  } else {
    auto* codes = static_cast<std::uint16_t*>(to) + place;
    store(reinterpret_cast<std::uint32_t*>(codes), words.word[0] WEFT_PASS_SITE);
  }
}
// The first where it says, the second `stride` elements further on.
WEFT_DEVICE void scatter_pair(void* to, std::uint64_t place, std::uint32_t stride, ElementKind kind,
                              const float* values WEFT_SITE) {
  const TwoWords words = words_of_pair(values, kind);
  if (kind == ElementKind::f32) {
    store(static_cast<std::uint32_t*>(to) + place, words.word[0] WEFT_PASS_SITE);
    store(static_cast<std::uint32_t*>(to) + place + stride, words.word[1] WEFT_PASS_SITE);
  } else {
    auto* codes = static_cast<std::uint16_t*>(to);
    store(codes + place, static_cast<std::uint16_t>(words.word[0]) WEFT_PASS_SITE);
    store(codes + place + stride, static_cast<std::uint16_t>(words.word[0] >> 16) WEFT_PASS_SITE);
  }
}

}  // namespace weft::cuda
