#pragma once

// Attention over paged K and V with online softmax, for one instruction set (WEFT_FLOAT_VECTORS: see
// float_vector_operations.h).
//
// A row's result is one fixed sequence of operations on its own query and the tokens that it attends to. Scores are
// summed over head_dim in order. Each step of kAttentionStep tokens (by absolute position) rescales by its maximum. P x
// V is summed over tokens in order. Segments of kAttentionSegment tokens are summed separately and folded in order. The
// result does not depend on the rows that share a tile, the chunks, the block size, or the threads that share segments.
//
// Tokens that a row does not attend to get probability 0. They are never multiplied with V, which may contain anything
// there. A step without tokens of a row does not change the row's sums, so steps before the windows of all rows of a
// tile are skipped.

#include <cstdint>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/float_vector_operations.h"

namespace weft::cpu {
namespace {

// Tokens whose K and V have one fixed stride: the unit in which pages are addressed.
constexpr int kChunk = 16;
constexpr int kChunks = kAttentionStep / kChunk;
constexpr float kMinusInfinity = -__builtin_inff();
// The maximum of no scores. It is finite, so that masked scores of -infinity have probability 0 relative to it, too.
constexpr float kLowest = -__FLT_MAX__;

// exp(x) for x <= 0, exact to about 2 units in the last place; exactly 1 at 0 and exactly 0 below -87.3; NaN for NaN.
// The coefficients are those of 1/k!; the last two are changed to lower the error on |r| <= ln(2)/2.
inline Floats exp_nonpositive(Floats x) {
  const Floats n = round_even(x * 1.44269504f);
  Floats r = multiply_add(n, fill(-0.693145752f), x);  // ln(2) in two parts
  r = multiply_add(n, fill(-1.42860677e-6f), r);
  Floats p = fill(1.38145988e-3f);
  p = multiply_add(p, r, fill(8.36871658e-3f));
  p = multiply_add(p, r, fill(4.1668389e-2f));
  p = multiply_add(p, r, fill(1.66665211e-1f));
  p = multiply_add(p, r, fill(4.9999994e-1f));
  p = multiply_add(p, r * r, r);
  p = p + 1.0f;
  const Floats value = floats_of(wrapping_sum(bits_of(p), integers_of(n) << 23));
  return x < -87.3f ? Floats{} : value;
}

// A step's K and V: `keys[c]` is K [head_dim] at `key_stride` of chunk c's 16 tokens, `values[c]` is V [16][head_dim].
template <class Page>
struct Step {
  const Page* keys[kChunks];
  const Page* values[kChunks];
  std::int64_t key_stride;
};

// The addresses of a token's K column and V row.
template <class Page>
struct TokenAddress {
  const Page* key;
  const Page* value;
};
template <class Page>
inline TokenAddress<Page> find_token(const AttentionTask& task, std::int64_t token) {
  const std::uint32_t block = static_cast<std::uint32_t>(task.block);  // 64-bit division is slow
  const std::uint32_t position = static_cast<std::uint32_t>(token);
  const std::int64_t page = task.block_table[position / block];
  const std::int64_t offset = position % block;
  const Page* keys = static_cast<const Page*>(task.pages) + page * task.page_elements + task.key_offset;
  return {keys + offset, keys + (task.block + offset) * task.head_dim};
}

// Finds the addresses of the step that begins at `start` and has `count` tokens.
template <class Page>
void find_step(const AttentionTask& task, std::int64_t start, int count, Page* gathered, Step<Page>& step) {
  const int chunks = (count + kChunk - 1) / kChunk;
  if (task.block % kChunk == 0) {
    step.key_stride = task.block;
    for (int c = 0; c < chunks; ++c) {
      const TokenAddress<Page> address = find_token<Page>(task, start + c * kChunk);
      step.keys[c] = address.key;
      step.values[c] = address.value;
    }
    return;
  }
  step.key_stride = kChunk;
  const std::int64_t width = task.head_dim;
  for (int c = 0; c < chunks; ++c) {
    Page* keys = gathered + 2 * c * kChunk * width;
    Page* values = keys + kChunk * width;
    for (int t = 0; t < kChunk; ++t) {
      const bool seen = c * kChunk + t < count;
      // After the last token, its K is used again, so that nothing uninitialised is read.
      const std::int64_t token = start + (seen ? c * kChunk + t : count - 1);
      const TokenAddress<Page> address = find_token<Page>(task, token);
      for (std::int64_t d = 0; d < width; ++d) keys[d * kChunk + t] = address.key[d * task.block];
      if (seen) __builtin_memcpy(values + t * width, address.value, sizeof(Page) * width);
    }
    step.keys[c] = keys;
    step.values[c] = values;
  }
}

// The vectors of a tile with this many rows: enough dependency chains to hide the latency of an addition, few enough
// for the registers.
template <int rows>
constexpr int kTileVectors = rows == 1   ? 8
                             : rows <= 3 ? 4
                                         : kWideTileVectors;

// sums[row][vector] += shared(vector) * own(row), with the fewer of the two kinds held in registers.
template <int rows, int vectors, class Shared, class Own>
inline void multiply_tile(Floats (&sums)[rows][vectors], Shared shared, Own own) {
  if constexpr (rows < vectors) {
    Floats held[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) held[r] = own(r);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Floats once = shared(v);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r][v] = multiply_add(once, held[r], sums[r][v]);
    }
  } else {
    Floats held[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) held[v] = shared(v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Floats once = own(r);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(held[v], once, sums[r][v]);
    }
  }
}

// scores[row][first ...] of `vectors` vectors of tokens.
template <int rows, int vectors, class Page>
inline void score_tile(const Step<Page>& step, const float* query, std::int64_t head_dim, std::int64_t query_stride,
                       int first, float* scores) {
  const Page* keys[vectors];
  for (int v = 0; v < vectors; ++v) {
    const int token = first + v * kLanes;
    keys[v] = step.keys[token / kChunk] + token % kChunk;
  }
  Floats sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) sums[r][v] = Floats{};
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    multiply_tile(
        sums, [&](int v) { return load(keys[v] + d * step.key_stride); },
        [&](int r) { return fill(query[r * query_stride + d]); });
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) store(scores + r * kAttentionStep + first + v * kLanes, sums[r][v]);
  }
}

// The largest lane, in every lane. The result may be NaN or not if a lane is NaN.
inline Floats largest_lane(Floats x) {
  for (int w = kLanes / 2; w > 0; w /= 2) {
    Integers other;
    for (int i = 0; i < kLanes; ++i) other[i] = i ^ w;
    x = larger(x, __builtin_shuffle(x, other));
  }
  return x;
}
inline float sum_of_lanes(Floats x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int w = kLanes / 2; w > 0; w /= 2) {
    for (int i = 0; i < w; ++i) lanes[i] += lanes[i + w];
  }
  return lanes[0];
}

// The tokens [from, to) of a step that each row attends to. Both increase with the row.
template <int rows>
struct Seen {
  int from[rows];
  int to[rows];
};

// Replaces the rows' scores by probabilities relative to each row's new maximum. The sums until now must be multiplied
// by factors[r]. Each phase handles all rows, so that their long dependency chains overlap.
template <int rows>
inline void softmax_step(float* scores, int padded, const Seen<rows>& seen, Floats* maximum, Floats* total,
                         Floats* factors) {
  Floats highest[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    for (int t = 0; t < seen.from[r]; ++t) scores[r * kAttentionStep + t] = kMinusInfinity;
    for (int t = seen.to[r]; t < padded; ++t) scores[r * kAttentionStep + t] = kMinusInfinity;
    highest[r] = maximum[r];
  }
  for (int t = 0; t < padded; t += kLanes) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) highest[r] = larger(load(scores + r * kAttentionStep + t), highest[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    highest[r] = largest_lane(highest[r]);
    factors[r] = exp_nonpositive(maximum[r] - highest[r]);
    maximum[r] = highest[r];
    total[r] = total[r] * factors[r];
  }
  for (int r = 0; r < rows; ++r) {
    float* row = scores + r * kAttentionStep;
    const Floats largest = maximum[r];
    Floats sum = total[r];
    for (int t = 0; t < padded; t += kLanes) {
      const Floats p = exp_nonpositive(load(row + t) - largest);
      sum = sum + p;
      store(row + t, p);
    }
    total[r] = sum;
  }
}

// sums[row][column ...] += P x V over the step's tokens [first, last).
template <int rows, int vectors, class Page, class Lanes>
inline void value_tile(const Step<Page>& step, const float* scores, std::int64_t head_dim, int first, int last,
                       std::int64_t column, Lanes lanes, const Floats* factors, float* sums, std::int64_t stride) {
  Floats accumulated[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      accumulated[r][v] = load(sums + r * stride + column + v * kLanes);
      if (factors != nullptr) accumulated[r][v] = accumulated[r][v] * factors[r];
    }
  }
  for (int t = first; t < last;) {
    const Page* values = step.values[t / kChunk] + (t % kChunk) * head_dim + column;
    const int end = (t / kChunk + 1) * kChunk < last ? (t / kChunk + 1) * kChunk : last;
    for (; t < end; ++t, values += head_dim) {
      multiply_tile(
          accumulated, [&](int v) { return load(values + v * kLanes, lanes); },
          [&](int r) { return fill(scores[r * kAttentionStep + t]); });
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) store(sums + r * stride + column + v * kLanes, accumulated[r][v]);
  }
}

template <int rows, class Page>
inline void add_values(const Step<Page>& step, const float* scores, std::int64_t head_dim, int first, int last,
                       const Floats* factors, float* sums, std::int64_t stride) {
  constexpr int kWide = kTileVectors<rows>;
  std::int64_t column = 0;
  for (; column + kWide * kLanes <= head_dim; column += kWide * kLanes) {
    value_tile<rows, kWide>(step, scores, head_dim, first, last, column, AllLanes{}, factors, sums, stride);
  }
  for (; column + kLanes <= head_dim; column += kLanes) {
    value_tile<rows, 1>(step, scores, head_dim, first, last, column, AllLanes{}, factors, sums, stride);
  }
  if (column < head_dim) {
    const FirstLanes rest{static_cast<int>(head_dim - column)};
    value_tile<rows, 1>(step, scores, head_dim, first, last, column, rest, factors, sums, stride);
  }
}

// Adds P x V of a step: the tokens that all rows attend to for all rows at once, the others row by row.
template <int rows, class Page>
inline void add_step(const Step<Page>& step, const float* scores, std::int64_t head_dim, const Seen<rows>& seen,
                     const Floats* factors, float* sums, std::int64_t stride) {
  const int first = seen.from[rows - 1], last = seen.to[0] > first ? seen.to[0] : first;
  const bool begin_together = seen.from[0] == first;
  for (int r = 0; r < rows && !begin_together; ++r) {
    const int end = seen.to[r] < first ? seen.to[r] : first;
    add_values<1>(step, scores + r * kAttentionStep, head_dim, seen.from[r], end, factors + r, sums + r * stride,
                  stride);
  }
  add_values<rows>(step, scores, head_dim, first, last, begin_together ? factors : nullptr, sums, stride);
  for (int r = 0; r < rows; ++r) {
    if (seen.to[r] <= last) continue;
    add_values<1>(step, scores + r * kAttentionStep, head_dim, last, seen.to[r], nullptr, sums + r * stride, stride);
  }
}

template <int rows, class Page>
inline void score_step(const Step<Page>& step, const float* query, std::int64_t head_dim, std::int64_t stride,
                       int padded, float* scores) {
  constexpr int kWide = kTileVectors<rows>;
  int token = 0;
  for (; token + kWide * kLanes <= padded; token += kWide * kLanes) {
    score_tile<rows, kWide>(step, query, head_dim, stride, token, scores);
  }
  for (; token < padded; token += kLanes) score_tile<rows, 1>(step, query, head_dim, stride, token, scores);
}

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

inline void write_output(const AttentionTask& task, std::int64_t row, Partial all, const float* sums) {
  const Floats factor = fill(1.0f / all.total);
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

// The segment of the first token that a row of this length attends to.
inline std::int64_t first_segment_seen(const AttentionTask& task, std::int64_t length) {
  return first_in_window(length, task.window) / kAttentionSegment;
}

// Parts of a task's scratch: rows of `width` floats.
template <class Page>
struct Scratch {
  explicit Scratch(const AttentionTask& task)
      : width(attention_row_floats(task.head_dim)),
        query(static_cast<float*>(task.scratch)),
        sums(query + kAttentionRows * width),
        all_sums(sums + kAttentionRows * width),
        scores(all_sums + kAttentionRows * width),
        gathered(reinterpret_cast<Page*>(scores + kAttentionRows * kAttentionStep)) {}
  std::int64_t width;
  float* query;
  float* sums;
  float* all_sums;
  float* scores;
  Page* gathered;
};

// Computes rows [first_row, first_row + rows) over the tokens [begin, end). Row r attends to the last tokens before
// length[r]. The last row has the last token of all rows, and the first row the first one.
template <int rows, class Page>
inline void attend_segment(const AttentionTask& task, const Scratch<Page>& scratch, const std::int64_t (&length)[rows],
                           std::int64_t begin, std::int64_t end, Partial (&partials)[rows]) {
  const std::int64_t head_dim = task.head_dim, width = scratch.width;
  Floats maximum[rows], total[rows];
  for (int r = 0; r < rows; ++r) {
    maximum[r] = fill(kLowest);
    total[r] = Floats{};
    clear_sums(scratch.sums + r * width, width);
  }
  const std::int64_t first = first_in_window(length[0], task.window) / kAttentionStep * kAttentionStep;
  for (std::int64_t start = first > begin ? first : begin; start < end; start += kAttentionStep) {
    const int count = end - start < kAttentionStep ? static_cast<int>(end - start) : kAttentionStep;
    const int padded = (count + kChunk - 1) / kChunk * kChunk;
    Step<Page> step;
    find_step(task, start, count, scratch.gathered, step);
    score_step<rows>(step, scratch.query, head_dim, width, padded, scratch.scores);
    Floats factors[rows];
    Seen<rows> seen;
    for (int r = 0; r < rows; ++r) {
      seen.from[r] = before_in_step(first_in_window(length[r], task.window), start, count);
      seen.to[r] = before_in_step(length[r], start, count);
    }
    softmax_step<rows>(scratch.scores, padded, seen, maximum, total, factors);
    add_step<rows>(step, scratch.scores, head_dim, seen, factors, scratch.sums, width);
  }
  for (int r = 0; r < rows; ++r) partials[r] = {maximum[r][0], sum_of_lanes(total[r])};
}

// Stores a row's partial result for a segment; finish_attention reads it.
inline void keep_partial(const AttentionTask& task, std::int64_t row, std::int64_t segment, Partial partial,
                         const float* sums, std::int64_t width) {
  float* kept = find_partial(task, row, segment);
  for (std::int64_t d = 0; d < width; d += kLanes) store(kept + d, load(sums + d));
  kept[width] = partial.maximum;
  kept[width + 1] = partial.total;
}

template <int rows, class Page>
void attend_tile(const AttentionTask& task, std::int64_t first_row) {
  const Scratch<Page> scratch(task);
  const std::int64_t head_dim = task.head_dim, width = scratch.width;
  std::int64_t length[rows];
  Partial all[rows];
  for (int r = 0; r < rows; ++r) {
    const std::int64_t row = first_row + r;
    const std::int64_t from = query_offset(task, row, task.query_token_stride);
    float* to = scratch.query + r * width;
    if (task.element == Element::f32)
      load_query(static_cast<const float*>(task.query) + from, head_dim, task.scale, to);
    if (task.element == Element::f16) load_query(static_cast<const Half*>(task.query) + from, head_dim, task.scale, to);
    if (task.element == Element::bf16)
      load_query(static_cast<const Brain*>(task.query) + from, head_dim, task.scale, to);
    length[r] = task.first_length + row / task.group;
    clear_sums(scratch.all_sums + r * width, width);
  }
  // The first and the last token of a row increase with the row.
  std::int64_t segment = first_segment_seen(task, length[0]), last = length[rows - 1];
  if (segment < task.first_segment) segment = task.first_segment;
  if (task.partials != nullptr && last > task.last_segment * kAttentionSegment)
    last = task.last_segment * kAttentionSegment;
  for (; segment * kAttentionSegment < last; ++segment) {
    const std::int64_t begin = segment * kAttentionSegment;
    const std::int64_t end = last - begin < kAttentionSegment ? last : begin + kAttentionSegment;
    Partial partials[rows];
    attend_segment<rows>(task, scratch, length, begin, end, partials);
    for (int r = 0; r < rows; ++r) {
      const float* sums = scratch.sums + r * width;
      if (task.partials == nullptr) {
        fold(all[r], scratch.all_sums + r * width, partials[r], sums, width);
      } else {
        keep_partial(task, first_row + r, segment, partials[r], sums, width);
      }
    }
  }
  if (task.partials != nullptr) return;
  for (int r = 0; r < rows; ++r) write_output(task, first_row + r, all[r], scratch.all_sums + r * width);
}

inline void finish_attention(const AttentionTask& task) {
  const std::int64_t width = attention_row_floats(task.head_dim);
  float* sums = static_cast<float*>(task.scratch);
  for (std::int64_t row = task.first_row; row < task.last_row; ++row) {
    const std::int64_t length = task.first_length + row / task.group;
    Partial all;
    clear_sums(sums, width);
    for (std::int64_t segment = first_segment_seen(task, length); segment * kAttentionSegment < length; ++segment) {
      const float* kept = find_partial(task, row, segment);
      fold(all, sums, {kept[width], kept[width + 1]}, kept, width);
    }
    write_output(task, row, all, sums);
  }
}

template <class Page>
void attend(const AttentionTask& task) {
  for (std::int64_t row = task.first_row; row < task.last_row;) {
    const std::int64_t left = task.last_row - row;
    // Seven or eight rows, a common number of query heads per KV head, are split into two even tiles.
    const std::int64_t rows = left > 8 ? kAttentionRows : left > kAttentionRows ? (left + 1) / 2 : left;
    switch (rows) {
      case 1:
        attend_tile<1, Page>(task, row);
        break;
      case 2:
        attend_tile<2, Page>(task, row);
        break;
      case 3:
        attend_tile<3, Page>(task, row);
        break;
      case 4:
        attend_tile<4, Page>(task, row);
        break;
      case 5:
        attend_tile<5, Page>(task, row);
        break;
      default:
        attend_tile<kAttentionRows, Page>(task, row);
        break;
    }
    row += rows;
  }
}

template <class From, class Page>
void store_kv_of(const KvStoreTask& task) {
  const From* key = static_cast<const From*>(task.key);
  const From* value = static_cast<const From*>(task.value);
  Page* page_key = static_cast<Page*>(task.page_key);
  Page* page_value = static_cast<Page*>(task.page_value);
  for_each_vector(task.head_dim, [&](std::int64_t d, auto lanes) {
    store(page_value + d, load(value + d, lanes), lanes);
    Page column[kLanes];
    store(column, load(key + d, lanes));
    const std::int64_t count = task.head_dim - d < kLanes ? task.head_dim - d : kLanes;
    for (std::int64_t i = 0; i < count; ++i) page_key[(d + i) * task.block] = column[i];
  });
}

template <class Page>
void store_kv(const KvStoreTask& task) {
  if (task.element == Element::f32) store_kv_of<float, Page>(task);
  if (task.element == Element::f16) store_kv_of<Half, Page>(task);
  if (task.element == Element::bf16) store_kv_of<Brain, Page>(task);
}

constexpr AttentionKernels make_attention_kernels() {
  return {{attend<float>, attend<Half>, attend<Brain>},
          finish_attention,
          {store_kv<float>, store_kv<Half>, store_kv<Brain>}};
}

}  // namespace
}  // namespace weft::cpu
