#pragma once

// One step of attention over paged K and V, for a tile of rows: finds the addresses of its tokens, computes scores,
// softmax relative to the maximum until now, and P x V. For one instruction set, as attention_skeleton.h is, which
// states the order of operations.

#include <cstdint>

#include "kernels/cpu/lib/attention_codes.h"
#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/float_vector_operations.h"

namespace weft::cpu {
namespace {

// Tokens whose K and V have one fixed stride: the unit in which pages are addressed.
constexpr int kChunk = kKeysTogether;
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

// tanh(x), to about 1e-7 of absolute error; NaN for NaN.
inline Floats tanh_of(Floats x) {
  const Floats size = absolute(x);
  const Floats e = exp_nonpositive(size * -2.0f);
  const Floats y = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -y : y;
}

// A step has the pages' own elements, or the floats that codes were converted to.
template <class Page>
struct StepElementOf {
  using Type = Page;
};
template <>
struct StepElementOf<Float8> {
  using Type = float;
};
template <>
struct StepElementOf<BlockQ8> {
  using Type = float;
};
template <class Page>
using StepElement = typename StepElementOf<Page>::Type;

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

// Converts the step that begins at `start` and has `count` tokens.
template <class Codes>
void convert_step(const AttentionTask& task, std::int64_t start, int count, float* gathered, Step<float>& step) {
  step.key_stride = kChunk;
  const auto* pages = static_cast<const Codes*>(task.pages);
  const auto block = static_cast<std::uint32_t>(task.block);
  const std::int64_t width = task.head_dim;
  for (int c = 0; c * kChunk < count; ++c) {
    float* keys = gathered + 2 * c * kChunk * width;
    float* values = keys + kChunk * width;
    const Codes* key_rows[kChunk];
    const Codes* value_rows[kChunk];
    for (int t = 0; t < kChunk; ++t) {
      // After the last token, its K and V are used again, so that nothing uninitialised is read.
      const auto token = static_cast<std::uint32_t>(start + (c * kChunk + t < count ? c * kChunk + t : count - 1));
      const std::int64_t key = task.block_table[token / block] * task.page_elements + task.key_offset +
                               static_cast<std::int64_t>(token % block) * width;
      key_rows[t] = row_at(pages, key);
      value_rows[t] = row_at(pages, key + task.block * width);
    }
    load_keys(key_rows, width, keys);
    for (int t = 0; t < kChunk; ++t) load_row(value_rows[t], width, values + t * width);
    step.keys[c] = keys;
    step.values[c] = values;
  }
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

// Bounds the scores of a step.
template <int rows>
inline void cap_scores(float* scores, int padded, float softcap) {
  const Floats cap = fill(softcap);
  for (int r = 0; r < rows; ++r) {
    float* row = scores + r * kAttentionStep;
    for (int t = 0; t < padded; t += kLanes) store(row + t, tanh_of(load(row + t) / cap) * cap);
  }
}

}  // namespace
}  // namespace weft::cpu
