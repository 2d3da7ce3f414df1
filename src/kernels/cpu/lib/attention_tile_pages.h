#pragma once

// K and V of bf16 pages in the layout of tiles: pairs of rows, interleaved (amx_tiles.h). For one instruction set, as
// attention_tiles_skeleton.h is.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/attention_pages.h"

namespace weft::cpu {
namespace {

// Two tiles of keys are as many tokens as one tile of values is deep.
constexpr int kTileTokens = 32;
constexpr std::int64_t kTileElements = 512;

// Tokens [from, to).
struct TokenRange {
  int from;
  int to;
};

// The pages of a segment's tokens.
struct SegmentPages {
  Step<Brain> steps[kAttentionSegment / kAttentionStep];
  int count;  // of tokens
};

using Pairs = std::uint16_t __attribute__((vector_size(64)));
using HalfPairs = std::uint16_t __attribute__((vector_size(32)));

// Interleaves 16 elements of two rows.
inline void store_pairs(const Brain* first, const Brain* second, std::uint16_t* to) {
  HalfPairs a, b;
  std::memcpy(&a, first, sizeof(a));
  std::memcpy(&b, second, sizeof(b));
  const Pairs both = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25,
                                             10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::memcpy(to, &both, sizeof(both));
}
constexpr Brain kNoValues[kChunk] = {};

// The keys of 16 tokens from `keys` on, as tiles [depth / 32][16 pairs of columns][16 tokens][2]. In pages of 16 tokens
// two columns are adjacent, and one instruction interleaves them.
inline void pack_keys(const Brain* keys, std::int64_t key_stride, std::int64_t head_dim, std::int64_t depth,
                      std::uint16_t* to) {
  std::int64_t d = 0;
  if (key_stride == kChunk) {
    constexpr Pairs kOrder = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                              8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    for (; d < head_dim; d += 2, to += 32) {
      Pairs both;
      std::memcpy(&both, keys + d * kChunk, sizeof(both));
      both = __builtin_shuffle(both, kOrder);
      std::memcpy(to, &both, sizeof(both));
    }
  }
  for (; d < head_dim; d += 2, to += 32) store_pairs(keys + d * key_stride, keys + (d + 1) * key_stride, to);
  for (; d < depth; d += 2, to += 32) std::memset(to, 0, sizeof(Pairs));
}

// The keys and the values of the chunk that begins at token `t` of the segment. Chunks after the last token have no
// address, and are the last chunk; nothing uses their scores.
inline const Brain* keys_of_chunk(const SegmentPages& pages, int t) {
  t = t < pages.count ? t : pages.count - 1;
  return pages.steps[t / kAttentionStep].keys[t % kAttentionStep / kChunk];
}
inline const Brain* values_of_chunk(const SegmentPages& pages, int t) {
  t = t < pages.count ? t : pages.count - 1;
  return pages.steps[t / kAttentionStep].values[t % kAttentionStep / kChunk];
}

// The keys of a tile's tokens, as [2 of 16 tokens][depth / 32] tiles.
inline void pack_key_tile(const SegmentPages& pages, int tile, std::int64_t head_dim, std::int64_t depth,
                          std::uint16_t* to) {
  for (int t = tile * kTileTokens; t < (tile + 1) * kTileTokens; t += kChunk, to += kChunk * depth)
    pack_keys(keys_of_chunk(pages, t), pages.steps[t / kAttentionStep].key_stride, head_dim, depth, to);
}

// `columns` columns of the values of tokens t and t + 1, those outside of `seen` as zeros, as rows of tiles
// [columns / 16][16 pairs of tokens][16 columns][2].
inline void pack_value_pair(const Brain* values, std::int64_t value_stride, std::int64_t columns, int t,
                            TokenRange seen, std::uint16_t* to) {
  const Brain* rows[2];
  std::int64_t steps[2];
  for (int i = 0; i < 2; ++i) {
    const bool is_seen = t + i >= seen.from && t + i < seen.to;
    rows[i] = is_seen ? values + i * value_stride : kNoValues;
    steps[i] = is_seen ? kChunk : 0;
  }
  for (; columns >= kChunk; columns -= kChunk, to += kTileElements, rows[0] += steps[0], rows[1] += steps[1])
    store_pairs(rows[0], rows[1], to);
  if (columns == 0) return;
  Brain last[2][kChunk] = {};
  for (int i = 0; i < 2; ++i) std::memcpy(last[i], rows[i], sizeof(Brain) * static_cast<std::uint64_t>(columns));
  store_pairs(last[0], last[1], to);
}

// The values of a tile's tokens, those outside of `seen` as zeros: columns [column, column + columns).
inline void pack_value_tile(const SegmentPages& pages, int tile, TokenRange seen, std::int64_t column,
                            std::int64_t columns, std::uint16_t* to) {
  for (int t = tile * kTileTokens; t < (tile + 1) * kTileTokens; t += 2, to += 32) {
    const Step<Brain>& step = pages.steps[t / kAttentionStep];
    const Brain* values = kNoValues;  // tokens after the last one have no address
    if (t < pages.count) values = step.values[t % kAttentionStep / kChunk] + t % kChunk * step.value_stride + column;
    pack_value_pair(values, step.value_stride, columns, t, seen, to);
  }
}

// Finds the tokens [begin, end), of which nothing reads those of steps before token `first`. What a block that is no
// multiple of 16 tokens makes necessary is gathered in `scratch`.
inline void find_segment(const AttentionTask& task, std::int64_t begin, std::int64_t end, int first, void* scratch,
                         SegmentPages& pages) {
  pages.count = static_cast<int>(end - begin);
  for (int s = first / kAttentionStep; s * kAttentionStep < pages.count; ++s) {
    const int left = pages.count - s * kAttentionStep, count = left < kAttentionStep ? left : kAttentionStep;
    void* gathered = static_cast<Brain*>(scratch) + s * 2 * kAttentionStep * task.head_dim;
    find_step(task, begin + s * kAttentionStep, count, gathered, pages.steps[s]);
  }
}

// Fetches the values of a tile's tokens and the keys of the next one.
inline void prefetch_after_keys(const SegmentPages& pages, int tile, std::int64_t head_dim) {
  for (int t = tile * kTileTokens; t < (tile + 1) * kTileTokens && t < pages.count; t += kChunk) {
    const int next = t + kTileTokens < pages.count ? t + kTileTokens : t;
    const Step<Brain>&step = pages.steps[t / kAttentionStep], &of_next = pages.steps[next / kAttentionStep];
    const char* values = reinterpret_cast<const char*>(step.values[t % kAttentionStep / kChunk]);
    const char* keys = reinterpret_cast<const char*>(of_next.keys[next % kAttentionStep / kChunk]);
    for (std::int64_t i = 0; i < 2 * kChunk * head_dim; i += 64) {
      __builtin_prefetch(values + i);
      __builtin_prefetch(keys + i);
    }
  }
}

}  // namespace
}  // namespace weft::cpu
