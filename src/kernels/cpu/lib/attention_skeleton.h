#pragma once

// Attention over paged K and V with online softmax, for one instruction set (WEFT_FLOAT_VECTORS: see
// float_vector_operations.h).
//
// A row's result is one fixed sequence of operations on its own query and the tokens that it attends to. Scores are
// summed over head_dim in order. Each step of kAttentionStep tokens (by absolute position) rescales by its maximum. P x
// V is summed over tokens in order. In pages of q8_0, the products with the codes of a block of keys are summed first
// and then multiplied by its scale, and P is multiplied by the scale of a block of values. Segments of
// kAttentionSegment tokens are summed separately and folded in order. The result does not depend on the rows that share
// a tile, the chunks, the block size, or the threads that share segments.
//
// Tokens that a row does not attend to get probability 0. They are never multiplied with V, which may contain anything
// there. A step without tokens of a row does not change the row's sums, so steps before the windows of all rows of a
// tile are skipped.

#include <cstdint>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/attention_step.h"
#include "kernels/cpu/lib/float_vector_operations.h"

namespace weft::cpu {
namespace {

template <class T>
void load_query(const T* from, std::int64_t head_dim, float scale, float* to) {
  for_each_vector(head_dim, [&](std::int64_t d, auto lanes) { store(to + d, load(from + d, lanes) * scale, lanes); });
}
template <class T>
void store_output(const float* from, std::int64_t head_dim, Floats factor, T* to) {
  for_each_vector(head_dim, [&](std::int64_t d, auto lanes) { store(to + d, load(from + d, lanes) * factor, lanes); });
}

inline std::int64_t query_offset(const AttentionTask& task, std::int64_t row, std::int64_t token_stride) {
  return row / task.group * token_stride + row % task.group * task.head_dim;
}

// A row's partial result for some tokens, without its sums: the largest score, and the sum of the probabilities
// relative to it.
struct Partial {
  float maximum = kLowest;
  float total = 0;
};

// Adds a row's partial result for the following tokens. Does nothing if the row attends to none of them.
inline void fold(Partial& all, float* all_sums, Partial next, const float* sums, std::int64_t width) {
  if (next.total == 0) return;
  const Floats highest = larger(fill(all.maximum), fill(next.maximum));
  const Floats before = exp_nonpositive(fill(all.maximum) - highest);
  const Floats now = exp_nonpositive(fill(next.maximum) - highest);
  for (std::int64_t d = 0; d < width; d += kLanes)
    store(all_sums + d, multiply_add(load(sums + d), now, load(all_sums + d) * before));
  all = {highest[0], multiply_add(fill(next.total), now, fill(all.total) * before)[0]};
}

// The address of a row's partial result for a segment.
inline float* find_partial(const AttentionTask& task, std::int64_t row, std::int64_t segment) {
  const std::int64_t number = (row - task.first_row) * task.segments + segment - task.kept_segment;
  return task.partials + number * attention_partial_floats(task.head_dim);
}

inline void clear_sums(float* sums, std::int64_t width) {
  for (std::int64_t d = 0; d < width; d += kLanes) store(sums + d, Floats{});
}

inline float sink_of(const AttentionTask& task, std::int64_t row) {
  const std::int64_t head = row % task.group;
  if (task.sink_element == Element::f16) return load(static_cast<const Half*>(task.sinks) + head, FirstLanes{1})[0];
  if (task.sink_element == Element::bf16) return load(static_cast<const Brain*>(task.sinks) + head, FirstLanes{1})[0];
  return static_cast<const float*>(task.sinks)[head];
}

// What the row's sums are multiplied by: the reciprocal of all probabilities, to which a sink adds its own.
inline Floats output_factor(const AttentionTask& task, std::int64_t row, Partial all) {
  if (task.sinks == nullptr) return fill(1.0f / all.total);
  const Floats sink = fill(sink_of(task, row)), maximum = fill(all.maximum), highest = larger(sink, maximum);
  const Floats own = exp_nonpositive(maximum - highest);
  return own / multiply_add(fill(all.total), own, exp_nonpositive(sink - highest));
}

inline void write_output(const AttentionTask& task, std::int64_t row, Partial all, const float* sums) {
  const Floats factor = output_factor(task, row, all);
  const std::int64_t to = query_offset(task, row, task.output_token_stride);
  const std::int64_t head_dim = task.head_dim;
  if (task.element == Element::f32) store_output(sums, head_dim, factor, static_cast<float*>(task.output) + to);
  if (task.element == Element::f16) store_output(sums, head_dim, factor, static_cast<Half*>(task.output) + to);
  if (task.element == Element::bf16) store_output(sums, head_dim, factor, static_cast<Brain*>(task.output) + to);
}

// How many of the `count` tokens from `start` on are before `end`.
inline int before_in_step(std::int64_t end, std::int64_t start, int count) {
  const std::int64_t ahead = end - start;
  return ahead < 0 ? 0 : ahead < count ? static_cast<int>(ahead) : count;
}

// The segment of the first token that a row attends to.
inline std::int64_t first_segment_seen(const AttentionTask& task, std::int64_t row) {
  return first_in_window(length_of_row(task, row), task.window) / kAttentionSegment;
}

// Parts of a task's scratch: rows of `width` floats for each row of the task, and what one tile and one step need.
struct Scratch {
  explicit Scratch(const AttentionTask& task)
      : rows(task.last_row - task.first_row),
        width(attention_row_floats(task.head_dim)),
        query(static_cast<float*>(task.scratch)),
        sums(query + rows * width),
        all_sums(sums + rows * width),
        maximum(all_sums + rows * width),
        total(maximum + rows * kLanes),
        scores(total + rows * kLanes),
        scaled(scores + kAttentionRows * kAttentionStep),
        found(scaled + kAttentionScaled) {}
  std::int64_t rows;
  std::int64_t width;
  float* query;
  float* sums;      // of a segment
  float* all_sums;  // of all segments
  float* maximum;   // of a segment, kLanes for each row
  float* total;
  float* scores;
  float* scaled;
  void* found;  // by find_any_step, or the tiles of attention_tiles_skeleton.h
};

// Rows [first, first + rows) of the task, over the step that begins at `start`. The last row has the last token of all
// rows, and the first row the first one.
template <int rows, class Element>
inline void attend_step(const AttentionTask& task, const Scratch& scratch, const Step<Element>& step,
                        std::int64_t first_row, std::int64_t start, int step_tokens) {
  const std::int64_t head_dim = task.head_dim, width = scratch.width;
  const int count = before_in_step(end_of_row(task, first_row + rows - 1), start, step_tokens);
  if (count == 0 || first_in_window(length_of_row(task, first_row), task.window) >= start + count) return;
  const std::int64_t place = first_row - task.first_row;
  float* sums = scratch.sums + place * width;
  Floats maximum[rows], total[rows], factors[rows];
  Seen<rows> seen;
  for (int r = 0; r < rows; ++r) {
    maximum[r] = load(scratch.maximum + (place + r) * kLanes);
    total[r] = load(scratch.total + (place + r) * kLanes);
    const std::int64_t row = first_row + r;
    seen.from[r] = before_in_step(first_in_window(length_of_row(task, row), task.window), start, count);
    seen.to[r] = before_in_step(end_of_row(task, row), start, count);
  }
  const int padded = (count + kChunk - 1) / kChunk * kChunk;
  score_step<rows>(step, scratch.query + place * width, head_dim, width, padded, scratch.scores);
  if (task.softcap != 0) cap_scores<rows>(scratch.scores, padded, task.softcap);
  if (task.bias != nullptr) {
    for (int r = 0; r < rows; ++r) add_bias(task, first_row + r, start, padded, scratch.scores + r * kAttentionStep);
  }
  softmax_step<rows>(scratch.scores, padded, seen, maximum, total, factors);
  add_step<rows>(step, scratch.scores, head_dim, seen, factors, sums, width, scratch.scaled);
  for (int r = 0; r < rows; ++r) {
    store(scratch.maximum + (place + r) * kLanes, maximum[r]);
    store(scratch.total + (place + r) * kLanes, total[r]);
  }
}

// All rows of the task over one step, in tiles.
template <class Element>
inline void attend_tiles(const AttentionTask& task, const Scratch& scratch, const Step<Element>& step,
                         std::int64_t start, int count) {
  for (std::int64_t row = task.first_row; row < task.last_row;) {
    const std::int64_t left = task.last_row - row;
    // Seven or eight rows, a common number of query heads per KV head, are split into two even tiles.
    const std::int64_t rows = left > 8 ? kAttentionRows : left > kAttentionRows ? (left + 1) / 2 : left;
    switch (rows) {
      case 1:
        attend_step<1>(task, scratch, step, row, start, count);
        break;
      case 2:
        attend_step<2>(task, scratch, step, row, start, count);
        break;
      case 3:
        attend_step<3>(task, scratch, step, row, start, count);
        break;
      case 4:
        attend_step<4>(task, scratch, step, row, start, count);
        break;
      case 5:
        attend_step<5>(task, scratch, step, row, start, count);
        break;
      default:
        attend_step<kAttentionRows>(task, scratch, step, row, start, count);
        break;
    }
    row += rows;
  }
}

// Stores a row's partial result for a segment; finish_attention reads it.
inline void keep_partial(const AttentionTask& task, std::int64_t row, std::int64_t segment, Partial partial,
                         const float* sums, std::int64_t width) {
  float* kept = find_partial(task, row, segment);
  for (std::int64_t d = 0; d < width; d += kLanes) store(kept + d, load(sums + d));
  kept[width] = partial.maximum;
  kept[width + 1] = partial.total;
}

// Loads the rows' queries, scaled.
template <class Page>
inline void load_queries(const AttentionTask& task, const Scratch& scratch) {
  const float scale = task.scale * kUnit<Page>;
  for (std::int64_t row = task.first_row; row < task.last_row; ++row) {
    const std::int64_t from = query_offset(task, row, task.query_token_stride), head_dim = task.head_dim;
    float* to = scratch.query + (row - task.first_row) * scratch.width;
    if (task.element == Element::f32) load_query(static_cast<const float*>(task.query) + from, head_dim, scale, to);
    if (task.element == Element::f16) load_query(static_cast<const Half*>(task.query) + from, head_dim, scale, to);
    if (task.element == Element::bf16) load_query(static_cast<const Brain*>(task.query) + from, head_dim, scale, to);
  }
}

// Computes the rows' sums over the tokens [begin, end) of a segment, after which those before `last` follow.
template <class Page>
inline void attend_segment(const AttentionTask& task, const Scratch& scratch, std::int64_t begin, std::int64_t end,
                           std::int64_t last) {
  const std::int64_t rows = scratch.rows, width = scratch.width;
  clear_sums(scratch.sums, rows * width);
  for (std::int64_t row = 0; row < rows; ++row) {
    store(scratch.maximum + row * kLanes, fill(kLowest));
    store(scratch.total + row * kLanes, Floats{});
  }
  const std::int64_t shortest = length_of_row(task, task.first_row);
  const std::int64_t first = first_in_window(shortest, task.window) / kAttentionStep * kAttentionStep;
  for (std::int64_t start = first > begin ? first : begin; start < end; start += kAttentionStep) {
    const int count = end - start < kAttentionStep ? static_cast<int>(end - start) : kAttentionStep;
    Step<StepElement<Page>> step{};
    find_any_step<Page>(task, start, count, last, rows <= kAttentionRows, scratch.found, step);
    attend_tiles(task, scratch, step, start, count);
  }
  if constexpr (kUnit<Page> != 1)
    for (std::int64_t d = 0; d < rows * width; d += kLanes)
      store(scratch.sums + d, load(scratch.sums + d) * kUnit<Page>);
}

// Calls attend_segment(begin, end, last) for each segment with tokens that the rows attend to, which are [begin, end)
// and are followed by those before `last`. It computes the rows' sums, maxima and totals in the scratch, whose other
// sums must be clear.
template <class AttendSegment>
inline void attend_segments(const AttentionTask& task, const Scratch& scratch, AttendSegment attend_segment) {
  const std::int64_t rows = scratch.rows, width = scratch.width;
  Partial all[kAttentionTaskRows];
  // The first and the last token of a row increase with the row.
  std::int64_t segment = first_segment_seen(task, task.first_row);
  std::int64_t last = end_of_row(task, task.last_row - 1);
  if (segment < task.first_segment) segment = task.first_segment;
  if (task.partials != nullptr && last > task.last_segment * kAttentionSegment)
    last = task.last_segment * kAttentionSegment;
  for (; segment * kAttentionSegment < last; ++segment) {
    const std::int64_t begin = segment * kAttentionSegment;
    const std::int64_t end = last - begin < kAttentionSegment ? last : begin + kAttentionSegment;
    attend_segment(begin, end, last);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* sums = scratch.sums + row * width;
      const Partial partial{scratch.maximum[row * kLanes], sum_of_lanes(load(scratch.total + row * kLanes))};
      if (task.partials == nullptr) {
        fold(all[row], scratch.all_sums + row * width, partial, sums, width);
      } else {
        keep_partial(task, task.first_row + row, segment, partial, sums, width);
      }
    }
  }
  if (task.partials != nullptr) return;
  for (std::int64_t row = 0; row < rows; ++row)
    write_output(task, task.first_row + row, all[row], scratch.all_sums + row * width);
}

template <class Page>
void attend(const AttentionTask& task) {
  const Scratch scratch(task);
  load_queries<Page>(task, scratch);
  clear_sums(scratch.all_sums, scratch.rows * scratch.width);
  attend_segments(task, scratch, [&](std::int64_t begin, std::int64_t end, std::int64_t last) {
    attend_segment<Page>(task, scratch, begin, end, last);
  });
}

inline void finish_attention(const AttentionTask& task) {
  const std::int64_t width = attention_row_floats(task.head_dim);
  float* sums = static_cast<float*>(task.scratch);
  for (std::int64_t row = task.first_row; row < task.last_row; ++row) {
    const std::int64_t end = end_of_row(task, row);
    Partial all;
    clear_sums(sums, width);
    for (std::int64_t segment = first_segment_seen(task, row); segment * kAttentionSegment < end; ++segment) {
      const float* kept = find_partial(task, row, segment);
      fold(all, sums, {kept[width], kept[width + 1]}, kept, width);
    }
    write_output(task, row, all, sums);
  }
}

template <class From, class Page>
void store_kv_of(const KvStoreTask& task) {
  const From* key = static_cast<const From*>(task.key);
  const From* value = static_cast<const From*>(task.value);
  Page* page_key = static_cast<Page*>(task.page_key);
  Page* page_value = static_cast<Page*>(task.page_value);
  if constexpr (kIsCodes<Page>) {
    store_row(key, task.head_dim, page_key);
    if (page_value != nullptr) store_row(value, task.head_dim, page_value);
  } else {
    for_each_vector(task.head_dim, [&](std::int64_t d, auto lanes) {
      if (page_value != nullptr) store(page_value + d, load(value + d, lanes), lanes);
      Page column[kLanes];
      store(column, load(key + d, lanes));
      const std::int64_t count = task.head_dim - d < kLanes ? task.head_dim - d : kLanes;
      for (std::int64_t i = 0; i < count; ++i) page_key[(d + i) * task.block] = column[i];
    });
  }
}

template <class Page>
void store_kv(const KvStoreTask& task) {
  if (task.element == Element::f32) store_kv_of<float, Page>(task);
  if (task.element == Element::f16) store_kv_of<Half, Page>(task);
  if (task.element == Element::bf16) store_kv_of<Brain, Page>(task);
}

constexpr AttentionKernels make_attention_kernels() {
  return {{attend<float>, attend<Half>, attend<Brain>, attend<Float8>, attend<BlockQ8>},
          finish_attention,
          {store_kv<float>, store_kv<Half>, store_kv<Brain>, store_kv<Float8>, store_kv<BlockQ8>}};
}

}  // namespace
}  // namespace weft::cpu
