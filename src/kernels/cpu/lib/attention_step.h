#pragma once

// One step of attention over paged K and V, for a tile of rows: scores, softmax relative to the maximum until now, and
// P x V. For one instruction set, as attention_skeleton.h is, which
// states the order of operations.

#include <cstdint>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/attention_pages.h"
#include "kernels/cpu/lib/float_vector_operations.h"

namespace weft::cpu {
namespace {

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

// The vectors of a tile with this many rows: enough dependency chains to hide the latency of an addition, few enough
// for the registers.
template <int rows>
constexpr int kTileVectors = rows == 1   ? 8
                             : rows <= 3 ? 4
                                         : kWideTileVectors;

// sums[row][vector] += shared(vector) * own(row) for `count` vectors from `first` on, with the fewer of the two kinds
// held in registers.
template <int count, int rows, int vectors, class Shared, class Own>
inline void multiply_tile(Floats (&sums)[rows][vectors], int first, Shared shared, Own own) {
  if constexpr (rows < count) {
    Floats held[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) held[r] = own(r);
#pragma GCC unroll 8
    for (int v = first; v < first + count; ++v) {
      const Floats once = shared(v);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r][v] = multiply_add(once, held[r], sums[r][v]);
    }
  } else {
    Floats held[count];
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) held[v] = shared(first + v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Floats once = own(r);
#pragma GCC unroll 8
      for (int v = 0; v < count; ++v) sums[r][first + v] = multiply_add(held[v], once, sums[r][first + v]);
    }
  }
}

// Prefetches the cache lines of some bytes in a tile of a few rows, as one token's heads are: it reads keys and values
// from memory. The tiles of a prompt find what the one before them read.
template <int rows, std::size_t bytes>
inline void prefetch(const char* address) {
  if constexpr (rows <= 4) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(address + i);
  }
}

// scores[row][first ...] of `vectors` vectors of tokens. Each block of columns with a scale is summed separately.
template <int rows, int vectors, class Element>
[[gnu::noinline]] void score_tile(const Step<Element>& step, const float* query, std::int64_t head_dim,
                                  std::int64_t query_stride, int first, float* scores) {
  const Element* keys[vectors];
  for (int v = 0; v < vectors; ++v) {
    const int token = first + v * kLanes;
    keys[v] = step.keys[token / kChunk] + token % kChunk;
  }
  const std::int64_t columns = kHasScales<Element> ? kBlockElements : head_dim;
  // Each quarter of the columns prefetches a chunk.
  const std::int64_t quarter = head_dim / kAheadChunks, ahead_bytes = kAheadTokens * step.row_bytes / head_dim;
  const char* const* ahead_chunk = step.after_keys[first / kAheadTokens].chunks;
  std::int64_t d = 0, quarter_end = 0;
  const char* ahead = nullptr;
  for (std::int64_t block = 0; block < head_dim; block += columns) {
    Floats sums[rows][vectors];
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sums[r][v] = Floats{};
    }
    while (d < block + columns) {
      if (d == quarter_end) {
        ahead = *ahead_chunk++;
        quarter_end += quarter;
      }
      const std::int64_t end = quarter_end < block + columns ? quarter_end : block + columns;
      for (; d < end; ++d, ahead += ahead_bytes) {
        prefetch<rows, 64 * sizeof(Element)>(ahead);
        multiply_tile<vectors>(
            sums, 0, [&](int v) { return load(keys[v] + d * step.key_stride); },
            [&](int r) { return fill(query[r * query_stride + d]); });
      }
    }
    for (int v = 0; v < vectors; ++v) {
      float* to = scores + first + v * kLanes;
      Floats scale;
      if constexpr (kHasScales<Element>)
        scale = load(step.key_scales + block / kBlockElements * kAttentionStep + first + v * kLanes);
      for (int r = 0; r < rows; ++r) {
        float* sum = to + r * kAttentionStep;
        if constexpr (kHasScales<Element>)
          sums[r][v] = multiply_add(sums[r][v], scale, block == 0 ? Floats{} : load(sum));
        store(sum, sums[r][v]);
      }
    }
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

// Blocks of columns with one scale in a tile of values, and vectors in each of them.
template <int vectors, class Element>
constexpr int kTileBlocks =
    kHasScales<Element>&& vectors* kLanes > kBlockElements ? vectors* kLanes / kBlockElements : 1;

// sums[row][column ...] += P x V over the step's tokens [first, last). `weights` is P [blocks][rows][kAttentionStep],
// or P times the scales of V.
template <int rows, int vectors, class Element, class Lanes>
[[gnu::noinline]] void value_tile(const Step<Element>& step, const float* weights, int first, int last,
                                  std::int64_t column, Lanes lanes, const Floats* factors, float* sums,
                                  std::int64_t stride) {
  constexpr int kBlocks = kTileBlocks<vectors, Element>, kOfBlock = vectors / kBlocks;
  Floats accumulated[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      accumulated[r][v] = load(sums + r * stride + column + v * kLanes);
      if (factors != nullptr) accumulated[r][v] = accumulated[r][v] * factors[r];
    }
  }
  for (int t = first; t < last;) {
    const Element* values = step.values[t / kChunk] + (t % kChunk) * step.value_stride + value_offset<Element>(column);
    const int end = (t / kChunk + 1) * kChunk < last ? (t / kChunk + 1) * kChunk : last;
    const char* ahead = step.after_values[t / kAheadTokens].chunks[t / kChunk % kAheadChunks] +
                        t % kChunk * step.row_bytes + value_offset<Element>(column) * std::int64_t{sizeof(Element)};
    for (; t < end; ++t, values += step.value_stride, ahead += step.row_bytes) {
      prefetch<rows, vectors * kLanes * sizeof(Element)>(ahead);
#pragma GCC unroll 8
      for (int block = 0; block < kBlocks; ++block)
        multiply_tile<kOfBlock>(
            accumulated, block * kOfBlock,
            [&](int v) { return load(values + value_offset<Element>(v * kLanes) - value_offset<Element>(0), lanes); },
            [&](int r) { return fill(weights[(block * rows + r) * kAttentionStep + t]); });
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) store(sums + r * stride + column + v * kLanes, accumulated[r][v]);
  }
}

// The weights of a tile of values: P itself, or P times the scales of V for the tile's blocks of columns, in `scaled`.
template <int rows, int vectors, class Element>
inline const float* tile_weights(const Step<Element>& step, const float* scores, int first, int last,
                                 std::int64_t column, float* scaled) {
  if constexpr (!kHasScales<Element>) return scores;
  for (int block = 0; block < kTileBlocks<vectors, Element>; ++block) {
    const float* scales = step.value_scales + (column / kBlockElements + block) * kAttentionStep;
    float* to = scaled + block * rows * kAttentionStep;
    for (int t = first / kLanes * kLanes; t < last; t += kLanes) {
      const Floats scale = load(scales + t);
      for (int r = 0; r < rows; ++r) store(to + r * kAttentionStep + t, load(scores + r * kAttentionStep + t) * scale);
    }
  }
  return scaled;
}

template <int rows, class Element>
inline void add_columns(const Step<Element>& step, const float* scores, std::int64_t head_dim, int first, int last,
                        const Floats* factors, float* sums, std::int64_t stride, float* scaled) {
  constexpr int kWide = kTileVectors<rows>;
  std::int64_t column = 0;
  for (; column + kWide * kLanes <= head_dim; column += kWide * kLanes) {
    const float* weights = tile_weights<rows, kWide>(step, scores, first, last, column, scaled);
    value_tile<rows, kWide>(step, weights, first, last, column, AllLanes{}, factors, sums, stride);
  }
  for (; column + kLanes <= head_dim; column += kLanes) {
    const float* weights = tile_weights<rows, 1>(step, scores, first, last, column, scaled);
    value_tile<rows, 1>(step, weights, first, last, column, AllLanes{}, factors, sums, stride);
  }
  if constexpr (!kHasScales<Element>) {
    if (column == head_dim) return;
    const FirstLanes rest{static_cast<int>(head_dim - column)};
    value_tile<rows, 1>(step, scores, first, last, column, rest, factors, sums, stride);
  }
}

// The same for all columns. Values that are converted here are used for all columns while they are in L1.
template <int rows, class Element>
inline void add_values(const Step<Element>& step, const float* scores, std::int64_t head_dim, int first, int last,
                       const Floats* factors, float* sums, std::int64_t stride, float* scaled) {
  constexpr int kTogether = kAheadChunks * kChunk;
  if (kConvertsValues<Element> && step.converts) {
    for (int token = first / kTogether * kTogether; token < last; token += kTogether) {
      const int end = token + kTogether < last ? token + kTogether : last;
      for (int chunk = token / kChunk; chunk * kChunk < end; ++chunk) convert_values(step, chunk, head_dim);
      if (end == last) break;
      add_columns<rows>(step, scores, head_dim, first, end, factors, sums, stride, scaled);
      first = end;
      factors = nullptr;
    }
  }
  add_columns<rows>(step, scores, head_dim, first, last, factors, sums, stride, scaled);
}

// Adds P x V of a step: the tokens that all rows attend to for all rows at once, the others row by row.
template <int rows, class Element>
inline void add_step(const Step<Element>& step, const float* scores, std::int64_t head_dim, const Seen<rows>& seen,
                     const Floats* factors, float* sums, std::int64_t stride, float* scaled) {
  const int first = seen.from[rows - 1], last = seen.to[0] > first ? seen.to[0] : first;
  const bool begin_together = seen.from[0] == first;
  for (int r = 0; r < rows && !begin_together; ++r) {
    const int end = seen.to[r] < first ? seen.to[r] : first;
    add_values<1>(step, scores + r * kAttentionStep, head_dim, seen.from[r], end, factors + r, sums + r * stride,
                  stride, scaled);
  }
  add_values<rows>(step, scores, head_dim, first, last, begin_together ? factors : nullptr, sums, stride, scaled);
  for (int r = 0; r < rows; ++r) {
    if (seen.to[r] <= last) continue;
    add_values<1>(step, scores + r * kAttentionStep, head_dim, last, seen.to[r], nullptr, sums + r * stride, stride,
                  scaled);
  }
}

template <int rows, class Element>
inline void score_step(const Step<Element>& step, const float* query, std::int64_t head_dim, std::int64_t stride,
                       int padded, float* scores) {
  constexpr int kWide = kTileVectors<rows>;
  const auto convert = [&](int first, int count) {
    for (int t = first; step.converts && t < first + count; t += kLanes)
      if (t % kTokensTogether == 0) convert_keys(step, t, head_dim);
  };
  int token = 0;
  for (; token + kWide * kLanes <= padded; token += kWide * kLanes) {
    convert(token, kWide * kLanes);
    score_tile<rows, kWide>(step, query, head_dim, stride, token, scores);
  }
  for (; token < padded; token += kLanes) {
    convert(token, kLanes);
    score_tile<rows, 1>(step, query, head_dim, stride, token, scores);
  }
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

// The entries of a row of biases for consecutive tokens, of which the first has column `first`. Columns before the row
// are the first one, those after it the last one.
inline Floats bias_of_tokens(const float* biases, std::int64_t columns, std::int64_t first) {
  if (first >= 0 && first + kLanes <= columns) return load(biases + first);
  if (first + kLanes <= 1) return fill(biases[0]);
  if (first >= columns - 1) return fill(biases[columns - 1]);
  Floats result;
  for (int i = 0; i < kLanes; ++i) {
    const std::int64_t column = first + i;
    result[i] = biases[column < 0 ? 0 : column < columns ? column : columns - 1];
  }
  return result;
}

// Adds the biases of a row of the task to its scores of `count` tokens from `start` on, whole vectors.
inline void add_bias(const AttentionTask& task, std::int64_t row, std::int64_t start, int count, float* scores) {
  const float* biases = task.bias + row % task.group * task.bias_columns;
  const std::int64_t own = length_of_row(task, row) - 1, first = start - own + task.bias_columns / 2;
  for (int t = 0; t < count; t += kLanes)
    store(scores + t, load(scores + t) + bias_of_tokens(biases, task.bias_columns, first + t));
}

}  // namespace
}  // namespace weft::cpu
