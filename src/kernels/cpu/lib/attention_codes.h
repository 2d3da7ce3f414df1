#pragma once

// KV pages of codes, f8e4m3 and q8_0, for attention_skeleton.h. Both hold the keys and the values of a token as rows of
// bytes. Rows of keys are transposed, so that a vector has one column of adjacent tokens, as in pages of floats.
//
// Codes of f8e4m3 become f16 values 2^8 too small, which is exact. Codes of q8_0 stay as they are, and their scales are
// applied to sums of a block of columns: attention_step.h states where.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/float_vector_operations.h"
#include "kernels/cpu/lib/squares.h"

namespace weft::cpu {
namespace {

constexpr int kBlockElements = 32;  // of q8_0
// ggml's block_q8_0: value = scale * code.
struct BlockQ8 {
  Half scale;
  std::uint8_t codes[kBlockElements];
};
static_assert(sizeof(BlockQ8) == 34);

template <class Page>
constexpr bool kIsCodes = false;
template <>
constexpr bool kIsCodes<Float8> = true;
template <>
constexpr bool kIsCodes<BlockQ8> = true;

// Bytes of the elements of a row, or of all pages, before one that begins a block.
template <class Page>
constexpr std::int64_t bytes_before(std::int64_t element) {
  return static_cast<std::int64_t>(sizeof(Page)) * (__is_same(Page, BlockQ8) ? element / kBlockElements : element);
}
template <class Codes>
constexpr std::int64_t code_offset(std::int64_t column) {
  return sizeof(Codes) == 1 ? column : bytes_before<Codes>(column) + 2 + column % kBlockElements;
}

// The tokens whose keys are transposed together, and the columns: one per byte of 128 bits.
constexpr int kTokensTogether = 4 * kLanes;
constexpr int kColumnsTogether = 16;

// Transposes columns [d, d + columns) of the keys of kTokensTogether tokens. `chunks` has the address of the rows of 16
// tokens each; rows are adjacent.
template <class Codes, int columns>
[[gnu::noinline]] void transpose_columns(const std::uint8_t* const* chunks, std::int64_t row_bytes, std::int64_t d,
                                         std::uint8_t* to) {
  constexpr int kPieces = kLanes / 4;
  const std::uint8_t* pieces[kPieces];
  for (int i = 0; i < kPieces; ++i) pieces[i] = chunks[i] + code_offset<Codes>(d);
  Bytes rows[kColumnsTogether];
  std::int64_t offset = 0;
#pragma GCC unroll 16
  for (int t = 0; t < kColumnsTogether; ++t, offset += row_bytes) {
    asm("" : "+r"(offset));  // else an address of each row and piece is kept
    if constexpr (columns == kColumnsTogether) {
      rows[t] = load_pieces(pieces, offset);
    } else {
      std::uint8_t parts[kPieces][kColumnsTogether] = {};
      const std::uint8_t* addresses[kPieces];
      for (int i = 0; i < kPieces; ++i) {
        std::memcpy(parts[i], pieces[i] + offset, columns);
        addresses[i] = parts[i];
      }
      rows[t] = load_pieces(addresses, 0);
    }
  }
  transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < columns; ++i) std::memcpy(to + (d + i) * kTokensTogether, &rows[i], sizeof(Bytes));
}

// Stores the keys of kTokensTogether tokens as [head_dim][kTokensTogether]. head_dim is a multiple of 8.
template <class Codes>
inline void transpose_keys(const std::uint8_t* const* chunks, std::int64_t head_dim, std::uint8_t* to) {
  const std::int64_t row_bytes = bytes_before<Codes>(head_dim);
  std::int64_t d = 0;
  for (; d + kColumnsTogether <= head_dim; d += kColumnsTogether)
    transpose_columns<Codes, kColumnsTogether>(chunks, row_bytes, d, to);
  if (d < head_dim) transpose_columns<Codes, kColumnsTogether / 2>(chunks, row_bytes, d, to);
}

// f8e4m3 codes as f16, whose exponent has one more bit: 2^8 times too small. `count` is a multiple of kTokensTogether.
template <class Page>
constexpr float kUnit = 1.0f;
template <>
constexpr float kUnit<Float8> = 256.0f;
inline void widen_exactly(const std::uint8_t* codes, std::int64_t count, Half* to) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    store(to + i, fp8_values(load_bytes(codes + i)) * (1 / kUnit<Float8>));
}
[[gnu::noinline]] inline void widen(const std::uint8_t* codes, std::int64_t count, Half* to) {
  Bytes carries{};
  for (std::int64_t i = 0; i < count; i += kTokensTogether) {
    // Adding 1 carries into the sign only from the codes of a NaN, which f16 would read as a number.
    Bytes bytes;
    std::memcpy(&bytes, codes + i, sizeof(bytes));
    carries |= bytes ^ (bytes + 1);
    for (int part = 0; part < kTokensTogether; part += 2 * kLanes) {
      const HalfWords words = (load_signed_words(codes + i + part) << 7) & static_cast<std::int16_t>(0xbf80);
      std::memcpy(to + i + part, &words, sizeof(words));
    }
  }
  std::uint64_t parts[kLanes / 2], all = 0;
  std::memcpy(parts, &carries, sizeof(carries));
  for (const std::uint64_t part : parts) all |= part;
  const bool has_nan = (all & 0x8080808080808080) != 0;
  if (has_nan) widen_exactly(codes, count, to);
}

// One code of q8_0 without its scale.
struct Code8 {
  std::uint8_t bits;
};
inline Floats load(const Code8* from) { return __builtin_convertvector(load_signed_bytes(&from->bits), Floats); }

inline int count_of(AllLanes) { return kLanes; }
inline int count_of(FirstLanes lanes) { return lanes.count; }

template <class From>
void store_row(const From* from, std::int64_t head_dim, Float8* to) {
  for_each_vector(head_dim, [&](std::int64_t d, auto lanes) {
    const Floats x = load(from + d, lanes);
    const Floats held = x == x ? larger(smaller(x, fill(448.0f)), fill(-448.0f)) : x;
    std::int8_t codes[kLanes];
    store_bytes(codes, fp8_codes(held));
    std::memcpy(to + d, codes, static_cast<unsigned>(count_of(lanes)));
  });
}

// x rounded to the nearest integer, halves away from zero.
inline Floats round_away(Floats x) {
  const Floats whole = truncated(x), rest = x - whole;
  const Floats more = rest <= -0.5f ? fill(-1.0f) : Floats{};
  return whole + (rest >= 0.5f ? fill(1.0f) : more);
}

// As ggml quantizes a block: the scale is the largest magnitude / 127. If a value is not finite, all values of the
// block are NaN, so that the logits show it.
template <class From>
void store_row(const From* from, std::int64_t head_dim, BlockQ8* to) {
  for (std::int64_t d = 0; d < head_dim; d += kBlockElements, ++to) {
    Floats magnitudes{};
    Floats are_zero{};  // NaN where a value is not finite
    for (int i = 0; i < kBlockElements; i += kLanes) {
      const Floats x = load(from + d + i);
      magnitudes = larger(absolute(x), magnitudes);
      are_zero = are_zero + (x - x);
    }
    float largest = 0, zero = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      largest = magnitudes[lane] > largest ? magnitudes[lane] : largest;
      zero += are_zero[lane];
    }
    const bool is_finite = zero == 0;
    const float scale = largest / 127.0f, inverse = is_finite && scale != 0 ? 1.0f / scale : 0.0f;
    store_first(&to->scale, fill(is_finite ? scale : __builtin_nanf("")), 1);
    for (int i = 0; i < kBlockElements; i += kLanes) {
      const Floats code = round_away(load(from + d + i) * inverse);
      const Floats held = is_finite ? smaller(larger(code, fill(-128.0f)), fill(127.0f)) : Floats{};
      std::int8_t codes[kLanes];
      store_bytes(codes, integers_of(held));
      std::memcpy(to->codes + i, codes, sizeof(codes));
    }
  }
}

}  // namespace
}  // namespace weft::cpu
