// Attention over paged K and V as in attention.cu, by the matrix units: for prompts, which have many rows. A block
// computes 64 query rows of one KV head and sequence. Each of its four warps has 16 of them; the warps share K and V,
// which are copied to shared memory in steps of 64 tokens.
//
// Scores and probabilities stay in registers. With g = lane / 4 and t = lane % 4 (emulator/matrix_product.h) a lane has
// sixteen scores of rows g and g + 8 in each step, and a quarter of the sums. In pages, and so in shared memory, tokens
// of K are contiguous, and so are columns of V. The matrix units need two columns of one token in a word, and two
// tokens of one column. Two words from consecutive rows of the tile contain both for two tokens or columns: the even
// halves make one matrix, the odd ones the next. The assignment of tokens or columns to a matrix is free if the reader
// of the result uses the same one. The words of K are taken in the order 0 4 1 5 2 6 3 7, so that the scores of a lane
// are the probabilities that it must supply; the words of V are taken in order, so that a lane's sums are four
// contiguous columns. Rows of a tile are padded by 4 words: the 32 words that a warp reads together are in 32 banks.
//
// Each row of queries is scaled by a power of two to between 1 and 2, for f16 to the top of its range, so that bf16
// queries keep all digits down to 2^-29 of the row's largest when pages are f16. Probabilities are rounded to the type
// of V, for bf16 to twice its digits; their sum is not rounded. A row's bits depend on the numbers of rows and tokens
// of the call (which kernel is launched, and whether blocks share the sequence); attention.cu does not have this
// dependence. Tokens that a row does not see have no effect, as there: if another row of the warp sees a token whose V
// is not finite, rows are added one at a time. A row that sees an infinity in V gets an infinity or a NaN.

#include "kernels/cuda/device/attention_tiles.cuh"
#include "kernels/cuda/device/matrix.cuh"

namespace weft::cuda {

constexpr int kPadding = 4;
constexpr int kScoreMatrices = kStepTokens / 8;
constexpr Staging kTileStaging = {.threads = kMatrixWarps * 32, .loads = 4, .padding = kPadding};

WEFT_DEVICE std::uint32_t lane_row() { return thread_index() % 32 / 4; }
WEFT_DEVICE std::uint32_t lane_pair() { return thread_index() % 4; }

// Partial results of the rows of a warp for some tokens, as matrices of 8 columns; `total` of this lane's tokens until
// the lanes' totals are joined.
template <int columns>
struct MatrixSums {
  float sums[columns / 8][4];
  float maximum[2];
  float total[2];

  WEFT_DEVICE void clear() {
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; ++i) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;
    maximum[0] = maximum[1] = kLowest;
    total[0] = total[1] = 0;
  }
};

// The queries of a warp's rows as matrices of 16 columns, and the factors of their scores.
template <int columns>
struct MatrixQueries {
  std::uint32_t words[columns / 16][4];
  float scale[2];
};

WEFT_DEVICE void unpack_kind(std::uint32_t word, ElementKind kind, float& first, float& second) {
  if (kind == ElementKind::f16) {
    unpack(word, first, second, Half{});
  } else {
    unpack(word, first, second, Brain{});
  }
}

// Loads the row that is row 0 or 1 of a lane; returns the largest magnitude of the whole row.
template <int columns>
WEFT_DEVICE float load_query(const AttentionArguments& arguments, const QueryTile& tile, std::uint32_t row, int of_lane,
                             MatrixQueries<columns>& queries) {
  const bool is_there = row < tile.rows;
  const std::uint64_t place = is_there ? tile.query_place(arguments, row) + 2 * lane_pair() : 0;
  const auto* from = static_cast<const std::uint16_t*>(arguments.query) + place;
  float largest = 0;
  WEFT_UNROLL
  for (int i = 0; i < columns / 8; ++i) {
    const std::uint32_t word = is_there ? load(reinterpret_cast<const std::uint32_t*>(from + 8 * i)) : 0u;
    queries.words[i / 2][of_lane + i % 2 * 2] = word;
    float first, second;
    unpack_kind(word, arguments.kind, first, second);
    largest = larger(largest, larger(magnitude(first), magnitude(second)));
  }
  WEFT_UNROLL
  for (unsigned distance = 1; distance < 4; distance *= 2) largest = larger(largest, exchange(largest, distance));
  return largest;
}

// The exponent to which the largest query of a row is scaled. The largest power of f16 leaves the other queries all
// their digits down to 2^-29 of the largest.
template <class P>
constexpr std::uint32_t kQueryExponent = 15;
template <>
constexpr std::uint32_t kQueryExponent<Brain> = 0;

template <class P, int columns>
WEFT_DEVICE void load_queries(const AttentionArguments& arguments, const QueryTile& tile, std::uint32_t first,
                              MatrixQueries<columns>& queries) {
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float largest = load_query(arguments, tile, first + lane_row() + 8 * r, r, queries);
    // 2^e for the exponent e of the largest number, clamped so that it and its scaled reciprocal are normal numbers.
    constexpr std::uint32_t kUp = kQueryExponent<P> << 23;
    std::uint32_t power = bits_of(largest) & 0x7f800000u;
    if (power < kUp + 0x00800000u) power = kUp + 0x00800000u;
    if (power > kUp + 0x7e800000u) power = kUp + 0x7e800000u;
    const float factor = float_of(0x7f000000u + kUp - power);
    queries.scale[r] = arguments.scale * float_of(power - kUp);
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; ++i) {
      std::uint32_t& word = queries.words[i / 2][r + i % 2 * 2];
      float one, other;
      unpack_kind(word, arguments.kind, one, other);
      word = pack(one * factor, other * factor, P{});
    }
  }
}

// Reads words `word` of rows `row`, row + 1, row + 8 and row + 9 of a tile as a lane's part of two matrices: one of the
// words' lower halves, and one of the upper halves.
template <int stride, class Words>
WEFT_DEVICE void read_matrices(Words& tile, std::uint32_t row, std::uint32_t word, std::uint32_t (&matrices)[2][2]) {
  WEFT_UNROLL
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t upper = tile[(row + 8 * i) * stride + word], lower = tile[(row + 8 * i + 1) * stride + word];
    matrices[0][i] = (upper & 0xffffu) | lower << 16;
    matrices[1][i] = upper >> 16 | (lower & 0xffff0000u);
  }
}

// The token of score i of matrix `matrix` of this lane, in the step.
WEFT_DEVICE std::uint32_t token_of_score(int matrix, int i) {
  return matrix / 2 * 16 + 2 * lane_pair() + i % 2 * 8 + matrix % 2;
}

// Computes the step's scaled scores of the rows of this warp; minus infinity if a row does not see the token.
template <class P, int columns, class Words>
WEFT_DEVICE void score_step(const AttentionArguments& arguments, const QueryTile& tile, const Step& step,
                            std::uint32_t first, Words& keys, const MatrixQueries<columns>& queries,
                            float (&scores)[kScoreMatrices][4]) {
  const std::uint32_t word = lane_row() / 2 + lane_row() % 2 * 4;
  WEFT_UNROLL
  for (int j = 0; j < kScoreMatrices; ++j) scores[j][0] = scores[j][1] = scores[j][2] = scores[j][3] = 0;
  WEFT_UNROLL
  for (int k = 0; k < columns / 16; ++k) {
    WEFT_UNROLL
    for (int j = 0; j < kScoreMatrices; j += 2) {
      std::uint32_t matrices[2][2];
      read_matrices<kStepTokens / 2 + kPadding>(keys, 16 * k + 2 * lane_pair(), 4 * j + word, matrices);
      multiply_matrices(queries.words[k], matrices[0], scores[j], P{});
      multiply_matrices(queries.words[k], matrices[1], scores[j + 1], P{});
    }
  }
  const bool all_see = step.start + kStepTokens <= tile.length(arguments, first) &&
                       tile.begin(arguments, first + kMatrixRowsOfWarp - 1) <= step.start;
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    // The same test as `sees`, from the step's first token on, with fewer registers.
    const std::uint32_t behind = tile.length(arguments, first + lane_row() + 8 * r) - 1 - step.start;
    WEFT_UNROLL
    for (int j = 0; j < kScoreMatrices; ++j) {
      WEFT_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[j][i] = scores[j][i] * queries.scale[r];
        if (!all_see && behind - token_of_score(j, i) >= arguments.window) scores[j][i] = minus_infinity();
      }
    }
  }
}

// Replaces scores by probabilities relative to the rows' new maxima, and rescales the partial sums.
template <int columns>
WEFT_DEVICE void soften(float (&scores)[kScoreMatrices][4], MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    float highest = own.maximum[r], sum = 0;
    WEFT_UNROLL
    for (int j = 0; j < kScoreMatrices; ++j) highest = larger(highest, larger(scores[j][2 * r], scores[j][2 * r + 1]));
    WEFT_UNROLL
    for (unsigned distance = 1; distance < 4; distance *= 2) highest = larger(highest, exchange(highest, distance));
    const float factor = about_power_of_two(own.maximum[r] - highest);
    WEFT_UNROLL
    for (int j = 0; j < kScoreMatrices; ++j) {
      WEFT_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[j][i] = about_power_of_two(scores[j][i] - highest);
        sum = sum + scores[j][i];
      }
    }
    own.maximum[r] = highest;
    own.total[r] = own.total[r] * factor + sum;
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; ++i) {
      own.sums[i][2 * r] = own.sums[i][2 * r] * factor;
      own.sums[i][2 * r + 1] = own.sums[i][2 * r + 1] * factor;
    }
  }
}

// A step's probabilities as a lane's parts of matrices of 16 tokens. For bf16, which has eight significant bits, they
// have two parts: the nearest bf16 number, and the remainder.
template <class P>
constexpr int kParts = 1;
template <>
constexpr int kParts<Brain> = 2;
template <class P>
struct MatrixProbabilities {
  std::uint32_t words[kScoreMatrices / 2][kParts<P>][4];
};
template <class P>
WEFT_DEVICE MatrixProbabilities<P> pack_probabilities(const float (&scores)[kScoreMatrices][4]) {
  MatrixProbabilities<P> packed;
  WEFT_UNROLL
  for (int j = 0; j < kScoreMatrices / 2; ++j) {
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int of_pair = i % 2 * 2 + i / 2;
      float first = scores[2 * j][of_pair], second = scores[2 * j + 1][of_pair];
      WEFT_UNROLL
      for (int part = 0; part < kParts<P>; ++part) {
        const std::uint32_t word = pack(first, second, P{});
        packed.words[j][part][i] = word;
        float nearest[2];
        unpack(word, nearest[0], nearest[1], P{});
        first = first - nearest[0];
        second = second - nearest[1];
      }
    }
  }
  return packed;
}
// sums += probabilities x V of 16 tokens.
template <class P>
WEFT_DEVICE void multiply_probabilities(const std::uint32_t (&parts)[kParts<P>][4], const std::uint32_t* values,
                                        float* sums) {
  WEFT_UNROLL
  for (int part = 0; part < kParts<P>; ++part) multiply_matrices(parts[part], values, sums, P{});
}

// Adds P x V of the step's tokens; values after the step's end are 0.
template <class P, int columns, class Words>
WEFT_DEVICE void add_values(const MatrixProbabilities<P>& probabilities, Words& values, MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int j = 0; j < kScoreMatrices / 2; ++j) {
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; i += 2) {
      std::uint32_t matrices[2][2];
      read_matrices<columns / 2 + kPadding>(values, 16 * j + 2 * lane_pair(), 4 * i + lane_row(), matrices);
      multiply_probabilities<P>(probabilities.words[j], matrices[0], own.sums[i]);
      multiply_probabilities<P>(probabilities.words[j], matrices[1], own.sums[i + 1]);
    }
  }
}

// A pair of V from token `token` of the step on, with tokens outside [begin, end) replaced by 0.
WEFT_DEVICE std::uint32_t seen_pair(std::uint32_t pair, std::uint32_t token, std::uint32_t begin, std::uint32_t end) {
  return (token - begin < end - begin ? pair & 0xffffu : 0u) |
         (token + 1 - begin < end - begin ? pair & 0xffff0000u : 0u);
}

// The same if V of a token that some rows do not see is not finite: row by row, each with only the tokens that it sees.
template <class P, int columns, class Words>
WEFT_DEVICE void add_seen_values(const AttentionArguments& arguments, const QueryTile& tile, const Step& step,
                                 std::uint32_t first, const MatrixProbabilities<P>& probabilities, Words& values,
                                 MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int i = 0; i < columns / 8; ++i) {
    WEFT_UNROLL_BY(1)
    for (std::uint32_t row = 0; row < kMatrixRowsOfWarp; ++row) {
      const std::uint32_t begin = step.before(tile.begin(arguments, first + row));
      const std::uint32_t end = step.before(tile.length(arguments, first + row));
      float sums[4] = {own.sums[i][0], own.sums[i][1], own.sums[i][2], own.sums[i][3]};
      WEFT_UNROLL
      for (int j = 0; j < kScoreMatrices / 2; ++j) {
        const std::uint32_t token = 16 * j + 2 * lane_pair();
        std::uint32_t matrices[2][2];
        read_matrices<columns / 2 + kPadding>(values, token, i / 2 * 8 + lane_row(), matrices);
        const std::uint32_t of_row[2] = {seen_pair(matrices[i % 2][0], token, begin, end),
                                         seen_pair(matrices[i % 2][1], token + 8, begin, end)};
        multiply_probabilities<P>(probabilities.words[j], of_row, sums);
      }
      WEFT_UNROLL
      for (std::uint32_t n = 0; n < 4; ++n)
        if (row == lane_row() + n / 2 * 8) own.sums[i][n] = sums[n];
    }
  }
}

template <class P>
constexpr std::uint32_t kExponent = 0x7c00;
template <>
constexpr std::uint32_t kExponent<Brain> = 0x7f80;

// Whether V of tokens [from, to) of the step has an infinity or a NaN. All lanes of the warp must call it.
template <class P, int columns, class Words>
WEFT_DEVICE bool has_no_number(Words& values, std::uint32_t from, std::uint32_t to) {
  bool found = false;
  for (std::uint32_t token = from; token < to; ++token) {
    for (std::uint32_t word = thread_index() % 32; word < columns / 2; word += 32) {
      const std::uint32_t pair = values[token * (columns / 2 + kPadding) + word];
      found = found || (pair & kExponent<P>) == kExponent<P> || (pair >> 16 & kExponent<P>) == kExponent<P>;
    }
  }
  return holds_in_any_lane(found);
}

template <int columns>
WEFT_DEVICE void join_totals(MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    WEFT_UNROLL
    for (unsigned distance = 1; distance < 4; distance *= 2)
      own.total[r] = own.total[r] + exchange(own.total[r], distance);
  }
}

// Four contiguous columns of a row, from matrices i and i + 1.
template <int columns>
WEFT_DEVICE void four_columns(const MatrixSums<columns>& own, int i, int r, float factor, float (&values)[4]) {
  WEFT_UNROLL
  for (int n = 0; n < 4; ++n) values[n] = own.sums[i + n % 2][2 * r + n / 2] * factor;
}

// Stores the warp's partial result for a segment, for finish_attention.
template <int columns>
WEFT_DEVICE void store_partials(const AttentionArguments& arguments, const QueryTile& tile, std::uint32_t first,
                                std::uint32_t segment, const MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t row = first + lane_row() + 8 * r;
    if (row >= tile.rows) continue;
    const std::uint64_t place = partial_place(arguments, tile.head_row(arguments, row), segment, tile.first_length);
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; i += 2) {
      float values[4];
      four_columns(own, i, r, 1.0f, values);
      const std::uint64_t column = place + 8 * i + 4 * lane_pair();
      store_elements<2>(arguments.partials, column, ElementKind::f32, values);
      store_elements<2>(arguments.partials, column + 2, ElementKind::f32, values + 2);
    }
    const float ends[2] = {own.maximum[r], own.total[r]};
    if (lane_pair() == 0) store_elements<2>(arguments.partials, place + columns, ElementKind::f32, ends);
  }
}

template <int columns>
WEFT_DEVICE void store_results(const AttentionArguments& arguments, const QueryTile& tile, std::uint32_t first,
                               const MatrixSums<columns>& own) {
  WEFT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t row = first + lane_row() + 8 * r;
    if (row >= tile.rows) continue;
    const float factor = divide(1.0f, own.total[r]);
    auto* to = static_cast<std::uint16_t*>(arguments.output) + tile.head_row(arguments, row) * columns;
    WEFT_UNROLL
    for (int i = 0; i < columns / 8; i += 2) {
      float values[4];
      four_columns(own, i, r, factor, values);
      const std::uint32_t words[2] = {pack(arguments.kind, values[0], values[1]),
                                      pack(arguments.kind, values[2], values[3])};
      store_words<2>(to + 8 * i + 4 * lane_pair(), words);
    }
  }
}

// Computes a step for the rows of a warp.
template <class P, int columns, class Keys, class Values>
WEFT_DEVICE void attend_step(const AttentionArguments& arguments, const QueryTile& tile, const Step& step,
                             std::uint32_t first, Keys& keys, Values& values, const MatrixQueries<columns>& queries,
                             MatrixSums<columns>& own) {
  float scores[kScoreMatrices][4];
  score_step<P, columns>(arguments, tile, step, first, keys, queries, scores);
  soften(scores, own);
  const MatrixProbabilities<P> probabilities = pack_probabilities<P>(scores);
  // The windows of later rows begin and end later: all rows see [all_begin, all_end).
  const std::uint32_t all_begin = step.before(tile.begin(arguments, first + kMatrixRowsOfWarp - 1));
  const std::uint32_t all_end = step.before(tile.length(arguments, first));
  const bool is_careful = (all_begin > 0 && has_no_number<P, columns>(values, 0, all_begin)) ||
                          (all_end < step.count && has_no_number<P, columns>(values, all_end, step.count));
  if (is_careful) {
    add_seen_values<P, columns>(arguments, tile, step, first, probabilities, values, own);
  } else {
    add_values<P, columns>(probabilities, values, own);
  }
}

template <class P, int columns>
WEFT_DEVICE void attention_mma(const AttentionArguments& arguments) {
  constexpr int kKeyWords = columns * (static_cast<int>(kStepTokens) / 2 + kPadding);
  constexpr int kValueWords = static_cast<int>(kStepTokens) * (columns / 2 + kPadding);
  WEFT_SHARED_WORDS(keys, kKeyWords);
  WEFT_SHARED_WORDS(values, kValueWords);
  const std::uint32_t sharers = arguments.sharers.divisor;
  const std::uint32_t number = quotient(block_index(), arguments.sharers), sharer = block_index() - number * sharers;
  const QueryTile tile = find_tile(arguments, number, kMatrixWarps * kMatrixRowsOfWarp);
  const bool shares = is_shared(arguments, tile.segments);
  if (tile.rows == 0 || (sharer > 0 && !shares)) return;

  const std::uint32_t first = thread_index() / 32 * kMatrixRowsOfWarp;
  const std::uint32_t last = tile.length(arguments, tile.rows - 1);
  // The number of tokens that some row of this warp sees.
  const std::uint32_t seen = first < tile.rows ? tile.length(arguments, first + kMatrixRowsOfWarp - 1) : 0;
  MatrixQueries<columns> queries;
  load_queries<P>(arguments, tile, first, queries);

  MatrixSums<columns> own;
  own.clear();
  const std::uint32_t stride = shares ? sharers : 1;
  const std::uint32_t first_step = tile.begin(arguments, 0) / kStepTokens * kStepTokens;
  for (std::uint32_t segment = first_step / kSegmentTokens + sharer; segment * kSegmentTokens < last;
       segment += stride) {
    const std::uint32_t of_segment = segment * kSegmentTokens;
    const std::uint32_t end = last - of_segment < kSegmentTokens ? last : of_segment + kSegmentTokens;
    for (std::uint32_t start = of_segment < first_step ? first_step : of_segment; start < end; start += kStepTokens) {
      const std::uint32_t count = end - start < kStepTokens ? end - start : kStepTokens;
      const Step step{arguments.block_table + product(tile.sequence, arguments.max_blocks), block_row(), start, count};
      stage_keys<P, kTileStaging>(arguments, step, keys);
      stage_values<P, columns, kTileStaging>(arguments, step, kStepTokens, values);
      wait_for_block();
      if (start < seen) attend_step<P>(arguments, tile, step, first, keys, values, queries, own);
      wait_for_block();
    }
    if (!shares) continue;
    join_totals(own);
    store_partials(arguments, tile, first, segment, own);
    own.clear();
  }
  if (shares) return;
  join_totals(own);
  store_results(arguments, tile, first, own);
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_PAGES(KERNEL, pages, P, blocks) \
  KERNEL(attention_##pages##_64_mma, WEFT_THREADS(32 * kMatrixWarps, blocks), weft::cuda::attention_mma<P, 64>) \
  KERNEL(attention_##pages##_128_mma, WEFT_THREADS(32 * kMatrixWarps, kPrefillBlocks), weft::cuda::attention_mma<P, 128>)
#define WEFT_LIST(KERNEL) WEFT_PAGES(KERNEL, bf16, Brain, 3) WEFT_PAGES(KERNEL, f16, Half, 4)
// clang-format on
WEFT_CUDA_KERNELS(attention_mma, AttentionArguments, WEFT_LIST)
