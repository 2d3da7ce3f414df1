#pragma once

// Products of attention for a few rows by multiply-adds, with the bits of tile_dot_bf16 (amx_tiles.h). For the rows of
// one token the packing of keys and values would cost more than tiles gain. For one instruction set, as
// attention_tiles_skeleton.h is.

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/lib/attention_skeleton.h"
#include "kernels/cpu/lib/attention_tile_pages.h"
#include "kernels/cpu/lib/flushed.h"
#include "kernels/cpu/lib/subnormals_as_zeros.h"

namespace weft::cpu {
namespace {

constexpr int kFewRows = 4;

// Emulated tiles run on any host, which may have no fused multiply-add: it is emulated, too.
struct [[maybe_unused]] NoScope {};
using OrderedScope = std::conditional_t<kEmulatesTiles, NoScope, SubnormalsAsZeros>;
inline Floats ordered_multiply_add(Floats a, Floats b, Floats c) {
  if constexpr (!kEmulatesTiles) return multiply_add(a, b, c);
  Floats result;
  for (int i = 0; i < kLanes; ++i) result[i] = flushed_fma(a[i], b[i], c[i]);
  return result;
}
inline Floats ordered_sum(Floats a, Floats b) {
  if constexpr (!kEmulatesTiles) return a + b;
  Floats result;
  for (int i = 0; i < kLanes; ++i) result[i] = flushed_sum(a[i], b[i]);
  return result;
}

// Two chains of sums for each row and vector: one of the even elements of the pairs, and one of the odd ones.
template <int rows, int vectors>
struct Chains {
  Floats even[rows][vectors], odd[rows][vectors];

  void clear() {
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) even[r][v] = odd[r][v] = Floats{};
    }
  }
};

// The scores [rows][kAttentionSegment], before they are scaled, of `vectors` vectors of tokens from `token` on.
// `query` is [rows][query_stride].
template <int rows, int vectors>
[[gnu::noinline]] void score_few_rows(const SegmentPages& pages, int token, const float* query,
                                      std::int64_t query_stride, std::int64_t head_dim, float* scores) {
  const Brain *keys[vectors], *next_keys[vectors], *values[vectors];
  for (int v = 0; v < vectors; ++v) {
    const int t = token + v * kChunk, next = t + vectors * kChunk;
    keys[v] = keys_of_chunk(pages, t);
    next_keys[v] = keys_of_chunk(pages, next < pages.count ? next : t);
    values[v] = values_of_chunk(pages, t);
  }
  const std::int64_t stride = pages.steps[token / kAttentionStep].key_stride;
  Floats sums[rows][vectors] = {};
  for (std::int64_t d = 0; d < head_dim;) {
    const std::int64_t end = head_dim - d < 32 ? head_dim : d + 32;
    Chains<rows, vectors> chains;
    chains.clear();
    for (; d < end; d += 2) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const Floats even = load(keys[v] + d * stride), odd = load(keys[v] + (d + 1) * stride);
        __builtin_prefetch(next_keys[v] + d * stride);
        __builtin_prefetch(values[v] + d * kChunk);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          const float* pair = query + r * query_stride + d;
          chains.even[r][v] = ordered_multiply_add(fill(pair[0]), even, chains.even[r][v]);
          chains.odd[r][v] = ordered_multiply_add(fill(pair[1]), odd, chains.odd[r][v]);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v)
        sums[r][v] = ordered_sum(sums[r][v], ordered_sum(chains.even[r][v], chains.odd[r][v]));
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) store(scores + r * kAttentionSegment + token + v * kLanes, sums[r][v]);
  }
}

// sums [rows][sum_stride] += P x V, for `vectors` vectors of columns from `column` on, over the tokens `seen` of one
// tile. `probabilities` is [rows][kAttentionSegment].
template <int rows, int vectors, class Lanes>
[[gnu::noinline]] void add_values_of_few_rows(const SegmentPages& pages, const float* probabilities, TokenRange seen,
                                              std::int64_t column, Lanes lanes, float* sums, std::int64_t sum_stride) {
  Chains<rows, vectors> chains;
  chains.clear();
  const Step<Brain>& step = pages.steps[seen.from / kAttentionStep];
  const std::int64_t stride = step.value_stride;
  for (int t = seen.from / 2 * 2; t < seen.to; t += 2) {
    const Brain* values = step.values[t % kAttentionStep / kChunk] + t % kChunk * stride + column;
    const bool has_even = t >= seen.from, has_odd = t + 1 < seen.to;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Floats even = has_even ? load(values + v * kLanes, lanes) : Floats{};
      const Floats odd = has_odd ? load(values + stride + v * kLanes, lanes) : Floats{};
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const float* pair = probabilities + r * kAttentionSegment + t;
        chains.even[r][v] = ordered_multiply_add(fill(pair[0]), even, chains.even[r][v]);
        chains.odd[r][v] = ordered_multiply_add(fill(pair[1]), odd, chains.odd[r][v]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      float* sum = sums + r * sum_stride + column + v * kLanes;
      store(sum, ordered_sum(load(sum), ordered_sum(chains.even[r][v], chains.odd[r][v])));
    }
  }
}

// Vectors of 16 tokens or columns at a time, as the registers allow.
template <int rows>
constexpr int kFewVectors = rows <= 3 ? 4 : 2;

// The scores of the tiles [range.from, range.to) of tokens.
template <int rows>
inline void score_few(const SegmentPages& pages, TokenRange range, const float* query, std::int64_t query_stride,
                      std::int64_t head_dim, float* scores) {
  const OrderedScope scope;
  const int end = range.to * kTileTokens;
  int token = range.from * kTileTokens;
  constexpr int kWide = kFewVectors<rows> * kLanes;
  for (; token + kWide <= end; token += kWide)
    score_few_rows<rows, kFewVectors<rows>>(pages, token, query, query_stride, head_dim, scores);
  if (token < end) score_few_rows<rows, 2>(pages, token, query, query_stride, head_dim, scores);
}

// The probabilities, in bf16 in rows of `probabilities`, are widened in `wide`, [rows][kAttentionSegment].
template <int rows>
inline void add_values_of_few(const SegmentPages& pages, const float* probabilities, float* wide, TokenRange seen,
                              std::int64_t head_dim, float* sums, std::int64_t sum_stride) {
  for (int r = 0; r < rows; ++r) {
    const auto* row = reinterpret_cast<const Brain*>(probabilities + r * kAttentionSegment);
    for (int t = seen.from / kLanes * kLanes; t < seen.to; t += kLanes)
      store(wide + r * kAttentionSegment + t, load(row + t));
  }
  const OrderedScope scope;
  clear_sums(sums, rows * sum_stride);
  for (int first = seen.from; first < seen.to;) {
    const int tile_end = (first / kTileTokens + 1) * kTileTokens;
    const TokenRange tile{first, tile_end < seen.to ? tile_end : seen.to};
    std::int64_t column = 0;
    const auto add = [&]<int vectors>(auto lanes) {
      add_values_of_few_rows<rows, vectors>(pages, wide, tile, column, lanes, sums, sum_stride);
      column += vectors * kLanes;
    };
    constexpr int kWide = kFewVectors<rows>;
    while (column + kWide * kLanes <= head_dim) add.template operator()<kWide>(AllLanes{});
    while (column + kLanes <= head_dim) add.template operator()<1>(AllLanes{});
    if (column < head_dim) add.template operator()<1>(FirstLanes{static_cast<int>(head_dim - column)});
    first = tile.to;
  }
}

}  // namespace
}  // namespace weft::cpu
