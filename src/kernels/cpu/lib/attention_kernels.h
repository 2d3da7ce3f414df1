#pragma once

// The functions of attention_skeleton.h for attention.cpp and kv_cache_update.cpp: one table per instruction set. Plain
// types only: these objects must instantiate nothing of std.

#include <cstdint>

#include "kernels/attention_window.h"
#include "kernels/cpu/lib/element.h"

namespace weft::cpu {

// The elements that KV pages may have: kPageTypes of attention_variant.h. Float8 is one f8e4m3; a block of q8_0 is
// BlockQ8 of attention_codes.h.
inline constexpr int kPageElements = 5;
struct Float8 {
  std::uint8_t bits;
};

// Tokens of a softmax step. Steps begin at multiples of it, independent of the block size and the chunks of the prompt.
// So a row's order of operations depends on positions only.
inline constexpr int kAttentionStep = 128;
// Tokens of a segment: whole steps, also by position. Each segment is computed separately, and a row's segments are
// folded in order. So threads can share the tokens of one row.
inline constexpr int kAttentionSegment = 2 * kAttentionStep;
// Query rows that share a load of K and V: a tile.
inline constexpr int kAttentionRows = 6;
// Rows of one task: several tiles, few enough to share a short prompt among the threads; and at most, where a prompt is
// long and what tasks do once for all their rows counts.
inline constexpr int kAttentionBlockRows = 8 * kAttentionRows;
inline constexpr int kAttentionTaskRows = 4 * kAttentionBlockRows;

// Rows of one KV head of one sequence. A row is one query head at one token; rows are token-major: row = token * group
// + head, where `group` query heads share the KV head. Row r attends to the last `window` of the first `first_length +
// r / group` tokens, of which the last one is its own, and to at most `ahead` of the sequence's tokens after these.
struct AttentionTask {
  const void* query = nullptr;  // the first token's first query head of this KV head
  void* output = nullptr;
  Element element = Element::f32;       // of query and output
  std::int64_t query_token_stride = 0;  // in elements; heads are head_dim apart
  std::int64_t output_token_stride = 0;
  std::int64_t first_row = 0;  // rows [first_row, last_row), at most kAttentionTaskRows
  std::int64_t last_row = 0;
  std::int64_t group = 1;
  std::int64_t first_length = 1;
  std::int64_t window = kNoWindow;
  std::int64_t ahead = 0;
  std::int64_t all_tokens = 1;  // of the sequence
  std::int64_t head_dim = 0;    // a multiple of 8
  float scale = 1;
  float softcap = 0;            // 0, or a bound of the scores: softcap tanh(score / softcap)
  const void* sinks = nullptr;  // null, or one more score for each of the `group` query heads
  Element sink_element = Element::f32;
  // Null, or what is added to the scores: for each of the `group` query heads a row of bias_columns, an odd number. The
  // middle one is of the row's own token.
  const float* bias = nullptr;
  std::int64_t bias_columns = 1;
  const void* pages = nullptr;
  std::int64_t page_elements = 0;
  std::int64_t key_offset = 0;   // of this KV head inside a page, in elements; V follows K
  bool keys_are_values = false;  // there is no V
  std::int64_t block = 16;       // tokens a page
  const std::int32_t* block_table = nullptr;
  void* scratch = nullptr;  // attention_scratch_bytes, 64-byte aligned
  // If `partials` is set, attend stores the partial results of segments [first_segment, last_segment) there instead of
  // storing to output. finish then computes the output from all `segments` from `kept_segment` on, which include each
  // segment that a row attends to. Each row has attention_partial_floats for each segment, 64-byte aligned; segments of
  // a row are adjacent.
  float* partials = nullptr;
  std::int64_t kept_segment = 0;
  std::int64_t segments = 0;
  std::int64_t first_segment = 0;
  std::int64_t last_segment = 0;
};

// The tokens up to a row's own, and the end of those that it attends to.
constexpr std::int64_t length_of_row(const AttentionTask& task, std::int64_t row) {
  return task.first_length + row / task.group;
}
constexpr std::int64_t end_of_row(const AttentionTask& task, std::int64_t row) {
  return end_of_attention(length_of_row(task, row), task.ahead, task.all_tokens);
}

// Stores one token's K and V of one KV head in its page.
struct KvStoreTask {
  const void* key = nullptr;
  const void* value = nullptr;
  Element element = Element::f32;
  void* page_key = nullptr;    // this token's column of K; its row in pages of codes
  void* page_value = nullptr;  // null if the keys are the values
  std::int64_t block = 16;
  std::int64_t head_dim = 0;
};

struct AttentionKernels {
  void (*attend[kPageElements])(const AttentionTask&);  // in the order of kPageTypes
  void (*finish)(const AttentionTask&);                 // reads neither query nor pages
  void (*store_kv[kPageElements])(const KvStoreTask&);  // in the order of kPageTypes
};
extern const AttentionKernels attention_kernels_baseline;
extern const AttentionKernels attention_kernels_avx2;
extern const AttentionKernels attention_kernels_avx512;
// For queries and pages of bf16 (attention_tiles_skeleton.h).
void attend_in_tiles_amx(const AttentionTask& task);

// Floats of a row's sums: whole vectors.
constexpr std::int64_t attention_row_floats(std::int64_t head_dim) { return (head_dim + 15) / 16 * 16; }
// The sums, then the maximum and the total.
constexpr std::int64_t attention_partial_floats(std::int64_t head_dim) { return attention_row_floats(head_dim) + 16; }

// Probabilities times scales of values, in a tile of rows and of columns: 6 rows of 2 blocks, or 1 row of 4.
inline constexpr std::int64_t kAttentionScaled = 2 * kAttentionRows * kAttentionStep;

// What attend_in_tiles needs beside the rows: queries, keys and values in whole tiles, two slots of 64 columns of
// values, the scores of 32 rows, the sums of all rows and of 16 more, and K and V of a segment whose block is no
// multiple of 16 tokens.
constexpr std::int64_t attention_tile_bytes(std::int64_t head_dim) {
  const std::int64_t width = attention_row_floats(head_dim), depth = (head_dim + 31) / 32 * 32;
  return 2 * (kAttentionTaskRows + kAttentionSegment) * depth + 2 * kAttentionSegment * width + 2 * 2 * 32 * 64 +
         4 * (32 * kAttentionSegment + (kAttentionTaskRows + 16) * width) + 4 * kAttentionSegment * width;
}

// Scratch of one attend: for each row the scaled query, the sums of a segment and of all segments, and a vector of
// maxima and one of totals; the scores of a tile and a step; and either K and V of a step, gathered from pages of codes
// or of blocks that 16 does not divide, or what attend_in_tiles needs. finish needs less.
constexpr std::int64_t attention_scratch_bytes(std::int64_t head_dim) {
  const std::int64_t width = attention_row_floats(head_dim);
  const std::int64_t found = 4 * 2 * kAttentionStep * width, tiles = attention_tile_bytes(head_dim);
  return 4 * (kAttentionTaskRows * (3 * width + 2 * 16) + kAttentionRows * kAttentionStep + kAttentionScaled) +
         (found > tiles ? found : tiles);
}

}  // namespace weft::cpu
