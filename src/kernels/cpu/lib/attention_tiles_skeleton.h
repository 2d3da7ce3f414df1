#pragma once

// attend of attention_kernels.h for queries and pages of bf16, with the tiles of WEFT_TILES: 16 rows at a time, 32
// where there are as many.
//
// A row's result is one fixed sequence of operations on its own query and the tokens that it attends to, another one
// than that of attention_skeleton.h. For each segment of tokens (kAttentionSegment, by absolute position):
//
//   scores          products of the query and the keys, summed in the order of tile_dot_bf16 and then scaled; after the
//                   bound, if there is one, the bias is added
//   probabilities   exp(score - the segment's maximum); summed in f32, and rounded to bf16
//   sums            products of the rounded probabilities and the values, in the order of tile_dot_bf16
//
// Segments are folded as in attention_skeleton.h. The result does not depend on the rows of a task, the chunks, the
// block size, or the threads that share segments.
//
// Tokens that a row does not attend to have probability 0. A NaN or an infinity among their values makes sums NaN; the
// values of such rows are summed again, for each row without the tokens that it does not attend to.
//
// Where a task has more than 16 rows, the keys and values of a segment are packed once for all of them. For fewer rows
// a tile is packed into L1 right before it is multiplied, and up to kFewRows, as of one token, are multiplied without
// tiles (attention_few_rows.h).

#include WEFT_TILES

#include "kernels/cpu/lib/attention_few_rows.h"
#include "kernels/cpu/lib/attention_skeleton.h"
#include "kernels/cpu/lib/attention_tile_pages.h"

namespace weft::cpu {
namespace {

constexpr int kGroupRows = 16;
constexpr std::int64_t kTileRowBytes = 64;
constexpr std::int64_t kScoreStride = 4 * kAttentionSegment;  // bytes
// Columns of values that are packed at a time for a few rows: four tiles of sums.
constexpr std::int64_t kSlotColumns = 64;
constexpr std::int64_t kSlotElements = kTileTokens * kSlotColumns;

// The parts of a task's scratch that only tiles need. Two slots let a tile be packed while another one is read.
struct TileScratch {
  explicit TileScratch(const AttentionTask& task, const Scratch& scratch)
      : depth((task.head_dim + 31) / 32 * 32),
        columns(scratch.width),
        query(static_cast<std::uint16_t*>(scratch.found)),
        keys(query + kAttentionTaskRows * depth),
        values(keys + kAttentionSegment * depth),
        slots(values + kAttentionSegment * columns),
        scores(reinterpret_cast<float*>(slots + 2 * kSlotElements)),
        sums(scores + 2 * kGroupRows * kAttentionSegment),
        again(sums + kAttentionTaskRows * columns),
        gathered(again + kGroupRows * columns) {}
  std::int64_t depth;     // head_dim in whole tiles of keys
  std::int64_t columns;   // head_dim in whole tiles of values
  std::uint16_t* query;   // [rows][depth]
  std::uint16_t* keys;    // [tokens / 16][depth / 32] tiles
  std::uint16_t* values;  // [tokens / 32][columns / 16] tiles
  std::uint16_t* slots;   // [2][kSlotColumns / 16] tiles
  float* scores;          // [32 rows][kAttentionSegment], then probabilities in bf16 at the same stride
  float* sums;            // [rows][columns]
  float* again;           // [16 rows][columns]
  void* gathered;         // by find_segment
};

// sums [groups][16][columns of 16] = a times b, over `steps` tiles.
struct TileProduct {
  const void* a;  // rows at a_stride bytes, the next group after 16 of them
  std::int64_t a_stride;
  const std::uint16_t* b;  // tiles of the first column, b_step elements apart
  std::int64_t b_step;
  std::int64_t b_column;  // elements to the tiles of the second column
  std::int64_t steps;
  float* sums;  // rows at sum_stride bytes
  std::int64_t sum_stride;
};

template <int groups, int columns>
inline void multiply_tiles(const TileProduct& product) {
  const char* a = static_cast<const char*>(product.a);
  const std::int64_t to_group = kGroupRows * product.a_stride;
  tile_zero<0>();
  if constexpr (columns == 2) tile_zero<1>();
  if constexpr (groups == 2) tile_zero<2>();
  if constexpr (groups == 2 && columns == 2) tile_zero<3>();
  const std::uint16_t* b = product.b;
  for (std::int64_t step = 0; step < product.steps; ++step, a += kTileRowBytes, b += product.b_step) {
    tile_load<4>(a, product.a_stride);
    tile_load<6>(b, kTileRowBytes);
    if constexpr (columns == 2) tile_load<7>(b + product.b_column, kTileRowBytes);
    if constexpr (groups == 2) tile_load<5>(a + to_group, product.a_stride);
    tile_dot_bf16<0, 4, 6>();
    if constexpr (columns == 2) tile_dot_bf16<1, 4, 7>();
    if constexpr (groups == 2) tile_dot_bf16<2, 5, 6>();
    if constexpr (groups == 2 && columns == 2) tile_dot_bf16<3, 5, 7>();
  }
  char* sums = reinterpret_cast<char*>(product.sums);
  tile_store<0>(sums, product.sum_stride);
  if constexpr (columns == 2) tile_store<1>(sums + kTileRowBytes, product.sum_stride);
  if constexpr (groups == 2) tile_store<2>(sums + kGroupRows * product.sum_stride, product.sum_stride);
  if constexpr (groups == 2 && columns == 2)
    tile_store<3>(sums + kGroupRows * product.sum_stride + kTileRowBytes, product.sum_stride);
}

// The scores of a tile's tokens, before they are scaled, from its keys.
template <int groups>
inline void score_tile_of_tokens(const TileScratch& tiles, const std::uint16_t* query, const std::uint16_t* keys,
                                 int tile) {
  multiply_tiles<groups, 2>({.a = query,
                             .a_stride = tiles.depth * 2,
                             .b = keys,
                             .b_step = kTileElements,
                             .b_column = kChunk * tiles.depth,
                             .steps = tiles.depth / 32,
                             .sums = tiles.scores + tile * kTileTokens,
                             .sum_stride = kScoreStride});
}

// sums = P x V over tiles [range.from, range.to) of packed values.
template <int groups>
inline void add_packed_values(const TileScratch& tiles, TokenRange range, float* sums) {
  const std::int64_t of_tile = kTileTokens * tiles.columns;
  TileProduct product{.a = reinterpret_cast<const char*>(tiles.scores) + range.from * kTileRowBytes,
                      .a_stride = kScoreStride,
                      .b = tiles.values + range.from * of_tile,
                      .b_step = of_tile,
                      .b_column = kTileElements,
                      .steps = range.to - range.from,
                      .sums = sums,
                      .sum_stride = tiles.columns * 4};
  std::int64_t column = 0;
  for (; column + 32 <= tiles.columns; column += 32, product.b += 2 * kTileElements, product.sums += 32)
    multiply_tiles<groups, 2>(product);
  if (column < tiles.columns) multiply_tiles<groups, 1>(product);
}

// Replaces the scores of rows from `first_row` on, of the tokens [first, end) after `begin`, whole vectors, by
// probabilities in bf16. Each phase handles all rows, so that their long dependency chains overlap.
template <int rows>
inline void softmax_rows(const AttentionTask& task, std::int64_t first_row, std::int64_t begin, float* scores,
                         int first, int end, const TokenRange* seen, float* maximum, float* total) {
  Floats highest[rows], sum[rows];
  for (int r = 0; r < rows; ++r) highest[r] = fill(kLowest);
  for (int r = 0; r < rows; ++r) {
    float* row = scores + r * kAttentionSegment;
    for (int t = first; t < end; t += kLanes) store(row + t, load(row + t) * task.scale);
    if (task.softcap != 0) cap_scores<1>(row + first, end - first, task.softcap);
    if (task.bias != nullptr) add_bias(task, first_row + r, begin + first, end - first, row + first);
    for (int t = first; t < seen[r].from; ++t) row[t] = kMinusInfinity;
    for (int t = seen[r].to; t < end; ++t) row[t] = kMinusInfinity;
  }
  for (int t = first; t < end; t += kLanes) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) highest[r] = larger(load(scores + r * kAttentionSegment + t), highest[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    highest[r] = largest_lane(highest[r]);
    sum[r] = Floats{};
  }
  for (int t = first; t < end; t += kLanes) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float* row = scores + r * kAttentionSegment;
      const Floats p = exp_nonpositive(load(row + t) - highest[r]);
      sum[r] = sum[r] + p;
      store_normal(reinterpret_cast<Brain*>(row) + t, p);
    }
  }
  for (int r = 0; r < rows; ++r) {
    store(maximum + r * kLanes, highest[r]);
    store(total + r * kLanes, sum[r]);
  }
}

inline bool has_nan(const float* sums, std::int64_t width) {
  Integers found{};
  for (std::int64_t d = 0; d < width; d += kLanes) {
    const Floats x = load(sums + d);
    found |= x != x;
  }
  bool any = false;
  for (int i = 0; i < kLanes; ++i) any |= found[i] != 0;
  return any;
}

inline TokenRange tiles_of(TokenRange tokens) {
  return {tokens.from / kTileTokens, (tokens.to + kTileTokens - 1) / kTileTokens};
}

// One segment for all rows of a task.
class TileSegment {
 public:
  TileSegment(const AttentionTask& task, const Scratch& scratch, const TileScratch& tiles, std::int64_t begin,
              std::int64_t end)
      : task_(task), scratch_(scratch), tiles_(tiles), begin_(begin), count_(static_cast<int>(end - begin)) {
    find_segment(task, begin, end, seen_by(0).from, tiles.gathered, pages_);
  }

  void attend() {
    if (scratch_.rows <= kGroupRows) return attend_group();
    const TokenRange seen{seen_by(0).from, count_}, range = tiles_of(seen);
    for (int tile = range.from; tile < range.to; ++tile) {
      pack_key_tile(pages_, tile, task_.head_dim, tiles_.depth, tiles_.keys + tile * kTileTokens * tiles_.depth);
      pack_value_tile(pages_, tile, seen, 0, task_.head_dim, tiles_.values + tile * kTileTokens * tiles_.columns);
    }
    std::int64_t row = 0;
    for (; row + kGroupRows < scratch_.rows; row += 2 * kGroupRows) attend_groups<2>(row);
    if (row < scratch_.rows) attend_groups<1>(row);
  }

 private:
  // The tokens of the segment that a row of the task attends to.
  TokenRange seen_by(std::int64_t row) const {
    const std::int64_t first = first_in_window(length_of_row(task_, task_.first_row + row), task_.window);
    return {before_in_step(first, begin_, count_),
            before_in_step(end_of_row(task_, task_.first_row + row), begin_, count_)};
  }
  TokenRange seen_by_rows(std::int64_t first, std::int64_t rows) const {
    return {seen_by(first).from, seen_by(first + rows - 1).to};
  }
  float* sums_of(std::int64_t row) const { return tiles_.sums + row * tiles_.columns; }

  // Groups of rows from `first` on; rows after the task's last one are of no use.
  template <int groups>
  void attend_groups(std::int64_t first) {
    const std::int64_t left = scratch_.rows - first;
    const std::int64_t rows = left < groups * kGroupRows ? left : groups * kGroupRows;
    const TokenRange range = tiles_of(seen_by_rows(first, rows));
    if (range.from >= range.to) return clear(first, rows);
    for (int tile = range.from; tile < range.to; ++tile)
      score_tile_of_tokens<groups>(tiles_, tiles_.query + first * tiles_.depth,
                                   tiles_.keys + tile * kTileTokens * tiles_.depth, tile);
    softmax(first, rows, range);
    add_packed_values<groups>(tiles_, range, sums_of(first));
    add_again_where_nan(first, rows);
  }

  void attend_group() {
    const std::int64_t rows = scratch_.rows;
    const TokenRange seen = seen_by_rows(0, rows), range = tiles_of(seen);
    if (range.from >= range.to) return clear(0, rows);
    static_assert(kFewRows == 4);  // load_tile_queries widens the queries of as many
    if (rows == 1) return attend_few<1>(seen);
    if (rows == 2) return attend_few<2>(seen);
    if (rows == 3) return attend_few<3>(seen);
    if (rows == 4) return attend_few<4>(seen);
    for (int tile = range.from; tile < range.to; ++tile) {
      prefetch_after_keys(pages_, tile, task_.head_dim);
      std::uint16_t* slot = tiles_.keys + tile % 2 * kTileTokens * tiles_.depth;
      pack_key_tile(pages_, tile, task_.head_dim, tiles_.depth, slot);
      score_tile_of_tokens<1>(tiles_, tiles_.query, slot, tile);
    }
    softmax(0, rows, range);
    add_values(tiles_.scores, seen, sums_of(0));
    add_again_where_nan(0, rows);
  }

  template <int rows>
  void attend_few(TokenRange seen) {
    score_few<rows>(pages_, tiles_of(seen), scratch_.query, scratch_.width, task_.head_dim, tiles_.scores);
    softmax(0, rows, tiles_of(seen));
    float* wide = tiles_.scores + kGroupRows * kAttentionSegment;
    add_values_of_few<rows>(pages_, tiles_.scores, wide, seen, task_.head_dim, tiles_.sums, tiles_.columns);
    add_again_where_nan(0, rows);
  }

  // A segment that none of the rows attends to.
  void clear(std::int64_t first, std::int64_t rows) const {
    for (std::int64_t r = first; r < first + rows; ++r) {
      store(scratch_.maximum + r * kLanes, fill(kLowest));
      store(scratch_.total + r * kLanes, Floats{});
    }
    clear_sums(sums_of(first), rows * tiles_.columns);
  }

  void softmax(std::int64_t first, std::int64_t rows, TokenRange range) const {
    constexpr int kTogether = 4;
    const int begin = range.from * kTileTokens, end = range.to * kTileTokens;
    for (std::int64_t r = 0; r < rows;) {
      TokenRange seen[kTogether];
      const bool is_whole = r + kTogether <= rows;
      for (int i = 0; i < (is_whole ? kTogether : 1); ++i) seen[i] = seen_by(first + r + i);
      (is_whole ? softmax_rows<kTogether> : softmax_rows<1>)(task_, task_.first_row + first + r, begin_,
                                                             tiles_.scores + r * kAttentionSegment, begin, end, seen,
                                                             scratch_.maximum + (first + r) * kLanes,
                                                             scratch_.total + (first + r) * kLanes);
      r += is_whole ? kTogether : 1;
    }
  }

  // sums = P x V of one group over tokens that are packed meanwhile, those outside of `seen` as zeros.
  void add_values(const float* scores, TokenRange seen, float* sums) const {
    for (std::int64_t column = 0; column < tiles_.columns; column += kSlotColumns) {
      const std::int64_t left = tiles_.columns - column;
      if (left > 32)
        add_columns_of_values<4>(scores, seen, column, sums);
      else
        add_columns_of_values<2>(scores, seen, column, sums);
    }
  }

  // Of `count` tiles of columns, those after the last column are of no use.
  template <int count>
  void add_columns_of_values(const float* scores, TokenRange seen, std::int64_t column, float* sums) const {
    const TokenRange range = tiles_of(seen);
    const std::int64_t left = task_.head_dim - column, columns = left < kSlotColumns ? left : kSlotColumns;
    tile_zero<0>(), tile_zero<1>();
    if constexpr (count == 4) tile_zero<2>(), tile_zero<3>();
    for (int tile = range.from; tile < range.to; ++tile) {
      std::uint16_t* slot = tiles_.slots + tile % 2 * kSlotElements;
      pack_value_tile(pages_, tile, seen, column, columns, slot);
      tile_load<4>(reinterpret_cast<const char*>(scores) + tile * kTileRowBytes, kScoreStride);
      tile_load<5>(slot, kTileRowBytes), tile_load<6>(slot + kTileElements, kTileRowBytes);
      tile_dot_bf16<0, 4, 5>(), tile_dot_bf16<1, 4, 6>();
      if constexpr (count == 4) {
        tile_load<5>(slot + 2 * kTileElements, kTileRowBytes), tile_load<6>(slot + 3 * kTileElements, kTileRowBytes);
        tile_dot_bf16<2, 4, 5>(), tile_dot_bf16<3, 4, 6>();
      }
    }
    const std::int64_t stride = tiles_.columns * 4;
    const auto has = [&](int tile) { return column + tile * kChunk < tiles_.columns; };
    float* to = sums + column;
    tile_store<0>(to, stride);
    if (has(1)) tile_store<1>(to + kChunk, stride);
    if constexpr (count == 4) {
      if (has(2)) tile_store<2>(to + 2 * kChunk, stride);
      if (has(3)) tile_store<3>(to + 3 * kChunk, stride);
    }
  }

  void add_again_where_nan(std::int64_t first, std::int64_t rows) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      float* sums = sums_of(first + r);
      if (!has_nan(sums, tiles_.columns)) continue;
      const std::int64_t group = r / kGroupRows * kGroupRows;
      add_values(tiles_.scores + group * kAttentionSegment, seen_by(first + r), tiles_.again);
      std::memcpy(sums, tiles_.again + (r - group) * tiles_.columns,
                  sizeof(float) * static_cast<std::uint64_t>(tiles_.columns));
    }
  }

  const AttentionTask& task_;
  const Scratch& scratch_;
  const TileScratch& tiles_;
  std::int64_t begin_;
  int count_;
  SegmentPages pages_;
};

// Copies the rows' queries, and zeros after the last row and column. A few rows are widened instead.
inline void load_tile_queries(const AttentionTask& task, const Scratch& scratch, const TileScratch& tiles) {
  if (scratch.rows <= kFewRows) {
    AttentionTask unscaled = task;
    unscaled.scale = 1;
    return load_queries<Brain>(unscaled, scratch);
  }
  const std::int64_t padded = (scratch.rows + kGroupRows - 1) / kGroupRows * kGroupRows;
  std::memset(tiles.query, 0, sizeof(std::uint16_t) * static_cast<std::uint64_t>(padded * tiles.depth));
  for (std::int64_t row = 0; row < scratch.rows; ++row)
    std::memcpy(tiles.query + row * tiles.depth,
                static_cast<const std::uint16_t*>(task.query) +
                    query_offset(task, task.first_row + row, task.query_token_stride),
                sizeof(std::uint16_t) * static_cast<std::uint64_t>(task.head_dim));
}

void attend_in_tiles(const AttentionTask& task) {
  Scratch scratch(task);
  const TileScratch tiles(task, scratch);
  scratch.sums = tiles.sums;
  load_tile_queries(task, scratch, tiles);
  clear_sums(scratch.all_sums, scratch.rows * scratch.width);
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) set_tile_shape(shapes, tile, kGroupRows, kTileRowBytes);
  const TileScope scope(shapes);
  attend_segments(task, scratch, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    TileSegment(task, scratch, tiles, begin, end).attend();
  });
}

}  // namespace
}  // namespace weft::cpu
