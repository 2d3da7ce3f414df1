// Attention over paged K and V with online softmax. A block computes a tile of query rows of one KV head and sequence.
// Each of its warps has rows of its own; the warps share K and V, which are copied to shared memory in steps of 64
// tokens, by loads of 16 bytes. In a step a lane has the scores of two tokens for each row, and the sums of two columns
// in each 64. So K, V and probabilities are read without bank conflicts, and all lanes read the same queries and
// probabilities.
//
// The result of a row is one fixed sequence of operations on its own query and the tokens that it sees. Scores sum over
// columns in order. Each step of 64 tokens, by position, rescales by its maximum. P x V sums over tokens in order.
// Segments of 256 tokens, by position, are summed from zero and folded in order. Other rows, the size of a tile, the
// block size of pages and the number of blocks that share the segments do not change it. A token that a row does not
// see is never multiplied by a probability, so it has no effect. A step of which a row sees nothing leaves its sums
// unchanged, so a tile can begin at the first step in the window of its first row.

#include "kernels/cuda/device/attention_tiles.cuh"

namespace weft::cuda {

struct alignas(16) FourFloats {
  float value[4];
};

// Reads pair `number` of the elements in a tile.
template <class P, class Words>
WEFT_DEVICE void read_pair(Words& tile, std::uint32_t number, float* values) {
  if constexpr (sizeof(P) == 4) {
    const TwoWords words = load_two(tile, 2 * number);
    values[0] = float_of(words.word[0]);
    values[1] = float_of(words.word[1]);
  } else {
    unpack(tile[number], values[0], values[1], P{});
  }
}

// Queries, scaled: [columns of the head][warps][rows of a warp].
template <int columns, int warps, int rows, class Queries>
WEFT_DEVICE void stage_queries(const AttentionArguments& arguments, const QueryTile& tile, Queries& queries) {
  constexpr std::uint32_t kFours = warps * rows / 4, kThreads = warps * 32;
  const std::uint32_t head_dim = arguments.pages.head_dim;
  for (std::uint32_t i = thread_index(); i < kFours * head_dim; i += kThreads) {
    const std::uint32_t four = i / head_dim, column = i - four * head_dim;
    FourFloats scaled;
    WEFT_UNROLL
    for (std::uint32_t j = 0; j < 4; ++j) {
      scaled.value[j] = 0;
      if (4 * four + j >= tile.rows) continue;
      const std::uint64_t place = tile.query_place(arguments, 4 * four + j) + column;
      scaled.value[j] = load_element(arguments.query, place, arguments.kind) * arguments.scale;
    }
    queries[column * kFours + four] = scaled;
  }
}

// Partial results of some rows for some tokens: `sums` of this lane's columns, and `total` of this lane's tokens until
// the lanes' totals are joined.
template <int rows, int columns>
struct Sums {
  float sums[rows][columns / 32];
  float maximum[rows];
  float total[rows];

  WEFT_DEVICE void clear() {
    WEFT_UNROLL
    for (int r = 0; r < rows; ++r) {
      WEFT_UNROLL
      for (int i = 0; i < columns / 32; ++i) sums[r][i] = 0;
      maximum[r] = kLowest;
      total[r] = 0;
    }
  }
};

// Adds a row's partial result for the next tokens; it changes nothing if the row saw none of them.
template <int count>
WEFT_DEVICE void fold(float* sums, float& maximum, float& total, const float* next_sums, float next_maximum,
                      float next_total) {
  if (next_total == 0.0f) return;
  const float highest = larger(maximum, next_maximum);
  const float before = about_power_of_two(maximum - highest), now = about_power_of_two(next_maximum - highest);
  WEFT_UNROLL
  for (int i = 0; i < count; ++i) sums[i] = multiply_add(next_sums[i], now, sums[i] * before);
  total = multiply_add(next_total, now, total * before);
  maximum = highest;
}

// Replaces the scores of this lane's two tokens by probabilities relative to the rows' new maxima, and rescales the
// partial sums.
template <int rows, int columns>
WEFT_DEVICE void soften(float (&scores)[rows][2], Sums<rows, columns>& sums) {
  WEFT_UNROLL
  for (int r = 0; r < rows; ++r) {
    float highest = larger(scores[r][0], scores[r][1]);
    WEFT_UNROLL
    for (unsigned distance = 16; distance > 0; distance /= 2) highest = larger(highest, exchange(highest, distance));
    highest = larger(highest, sums.maximum[r]);
    const float factor = about_power_of_two(sums.maximum[r] - highest);
    scores[r][0] = about_power_of_two(scores[r][0] - highest);
    scores[r][1] = about_power_of_two(scores[r][1] - highest);
    sums.maximum[r] = highest;
    sums.total[r] = sums.total[r] * factor + (scores[r][0] + scores[r][1]);
    WEFT_UNROLL
    for (int i = 0; i < columns / 32; ++i) sums.sums[r][i] = sums.sums[r][i] * factor;
  }
}

// Computes this lane's two scores of each row of the warp, as sums over columns in order. A score is minus infinity if
// the row does not see the token.
template <class P, int warps, int rows, class Words, class Queries>
WEFT_DEVICE void score_step(const AttentionArguments& arguments, const QueryTile& rows_of_block, const Step& step,
                            Words& tile, Queries& queries, float (&scores)[rows][2]) {
  const std::uint32_t lane = thread_index() % 32, warp = thread_index() / 32;
  WEFT_UNROLL
  for (int r = 0; r < rows; ++r) scores[r][0] = scores[r][1] = 0;
  WEFT_UNROLL_BY(4)
  for (std::uint32_t column = 0; column < arguments.pages.head_dim; ++column) {
    float keys[2];
    read_pair<P>(tile, column * (kStepTokens / 2) + lane, keys);
    WEFT_UNROLL
    for (int four = 0; four < rows / 4; ++four) {
      const FourFloats query = queries[(column * warps + warp) * (rows / 4) + four];
      WEFT_UNROLL
      for (int j = 0; j < 4; ++j) {
        float(&score)[2] = scores[4 * four + j];
        score[0] = multiply_add(query.value[j], keys[0], score[0]);
        score[1] = multiply_add(query.value[j], keys[1], score[1]);
      }
    }
  }
  const std::uint32_t token = step.start + 2 * lane;
  WEFT_UNROLL
  for (int r = 0; r < rows; ++r) {
    const std::uint32_t length = rows_of_block.length(arguments, warp * rows + r);
    if (!sees(arguments, length, token)) scores[r][0] = minus_infinity();
    if (!sees(arguments, length, token + 1)) scores[r][1] = minus_infinity();
  }
}

// The index of a token's probabilities for the rows of a warp: even tokens, then odd ones, as the lanes wrote them.
template <int rows>
WEFT_DEVICE std::uint32_t probability_place(std::uint32_t token) {
  return ((thread_index() / 32 * 2 + token % 2) * 32 + token / 2) * (rows / 4);
}

template <int rows, class Probabilities>
WEFT_DEVICE void keep_probabilities(const float (&scores)[rows][2], Probabilities& probabilities) {
  WEFT_UNROLL
  for (std::uint32_t of_lane = 0; of_lane < 2; ++of_lane) {
    WEFT_UNROLL
    for (int four = 0; four < rows / 4; ++four) {
      FourFloats of_rows;
      WEFT_UNROLL
      for (int j = 0; j < 4; ++j) of_rows.value[j] = scores[4 * four + j][of_lane];
      probabilities[probability_place<rows>(thread_index() % 32 * 2 + of_lane) + four] = of_rows;
    }
  }
}

// Adds P x V of the step's tokens [first, last). With `checks`, each row leaves out tokens that it does not see.
template <class P, int rows, int columns, bool checks, class Words, class Probabilities>
WEFT_DEVICE void add_values(const AttentionArguments& arguments, const QueryTile& rows_of_block, const Step& step,
                            Words& tile, Probabilities& probabilities, std::uint32_t first, std::uint32_t last,
                            Sums<rows, columns>& sums) {
  const std::uint32_t lane = thread_index() % 32, first_row = thread_index() / 32 * rows;
  WEFT_UNROLL_BY(4)
  for (std::uint32_t token = first; token < last; ++token) {
    float values[columns / 32];
    WEFT_UNROLL
    for (int i = 0; i < columns / 64; ++i) read_pair<P>(tile, token * (columns / 2) + i * 32 + lane, values + 2 * i);
    WEFT_UNROLL
    for (int four = 0; four < rows / 4; ++four) {
      const FourFloats of_rows = probabilities[probability_place<rows>(token) + four];
      WEFT_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int r = 4 * four + j;
        if (checks && !sees(arguments, rows_of_block.length(arguments, first_row + r), step.start + token)) continue;
        WEFT_UNROLL
        for (int i = 0; i < columns / 32; ++i)
          sums.sums[r][i] = multiply_add(of_rows.value[j], values[i], sums.sums[r][i]);
      }
    }
  }
}

// This lane's columns of a row, in pairs.
template <int columns>
WEFT_DEVICE void store_row(void* to, std::uint64_t place, ElementKind kind, std::uint32_t head_dim,
                           const float* values) {
  WEFT_UNROLL
  for (int i = 0; i < columns / 64; ++i) {
    const std::uint32_t column = i * 64 + thread_index() % 32 * 2;
    if (column < head_dim) store_elements<2>(to, place + column, kind, values + 2 * i);
  }
}

// Stores the output of a row from its result for all its tokens.
template <int columns>
WEFT_DEVICE void store_result(const AttentionArguments& arguments, std::uint64_t row, float* sums, float total) {
  const float factor = divide(1.0f, total);
  WEFT_UNROLL
  for (int i = 0; i < columns / 32; ++i) sums[i] = sums[i] * factor;
  store_row<columns>(arguments.output, row * arguments.pages.head_dim, arguments.kind, arguments.pages.head_dim, sums);
}

template <class P, int columns, int warps, int rows, int loads>
WEFT_DEVICE void attention(const AttentionArguments& arguments) {
  constexpr int kRows = warps * rows;
  constexpr Staging kStaging = {.threads = warps * 32, .loads = loads};
  WEFT_SHARED_WORDS(tile_words, columns * kStepTokens * static_cast<int>(sizeof(P)) / 4);
  WEFT_SHARED(FourFloats, queries, columns * kRows / 4);
  WEFT_SHARED(FourFloats, probabilities, static_cast<int>(kStepTokens) * kRows / 4);
  const std::uint32_t sharers = arguments.sharers.divisor;
  const std::uint32_t number = quotient(block_index(), arguments.sharers), sharer = block_index() - number * sharers;
  const QueryTile tile = find_tile(arguments, number, kRows);
  const bool shares = is_shared(arguments, tile.segments);
  if (tile.rows == 0 || (sharer > 0 && !shares)) return;

  const std::uint32_t first = thread_index() / 32 * rows;
  const bool has_rows = first < tile.rows;  // this warp
  const std::uint32_t last = tile.length(arguments, tile.rows - 1);
  stage_queries<columns, warps, rows>(arguments, tile, queries);

  Sums<rows, columns> all, own;
  all.clear();
  const std::uint32_t stride = shares ? sharers : 1;
  const std::uint32_t first_step = tile.begin(arguments, 0) / kStepTokens * kStepTokens;
  for (std::uint32_t segment = first_step / kSegmentTokens + sharer; segment * kSegmentTokens < last;
       segment += stride) {
    own.clear();
    const std::uint32_t begin = segment * kSegmentTokens;
    const std::uint32_t end = last - begin < kSegmentTokens ? last : begin + kSegmentTokens;
    for (std::uint32_t start = begin < first_step ? first_step : begin; start < end; start += kStepTokens) {
      const std::uint32_t count = end - start < kStepTokens ? end - start : kStepTokens;
      const Step step{arguments.block_table + product(tile.sequence, arguments.max_blocks), block_row(), start, count};
      stage_keys<P, kStaging>(arguments, step, tile_words);
      wait_for_block();
      if (has_rows) {
        float scores[rows][2];
        score_step<P, warps, rows>(arguments, tile, step, tile_words, queries, scores);
        soften<rows, columns>(scores, own);
        keep_probabilities<rows>(scores, probabilities);
      }
      wait_for_block();
      stage_values<P, columns, kStaging>(arguments, step, step.count, tile_words);
      wait_for_block();
      if (has_rows) {
        // The windows of later rows begin and end later. If the windows of this warp's rows do not begin together, each
        // row leaves out the tokens that only other rows see.
        const std::uint32_t some_begin = step.before(tile.begin(arguments, first));
        const bool begin_together = some_begin == step.before(tile.begin(arguments, first + rows - 1));
        const std::uint32_t all_see = begin_together ? step.before(tile.length(arguments, first)) : some_begin;
        const std::uint32_t some_see = step.before(tile.length(arguments, first + rows - 1));
        add_values<P, rows, columns, false>(arguments, tile, step, tile_words, probabilities, some_begin, all_see, own);
        add_values<P, rows, columns, true>(arguments, tile, step, tile_words, probabilities, all_see, some_see, own);
      }
      wait_for_block();
    }
    WEFT_UNROLL
    for (int r = 0; r < rows; ++r) {
      WEFT_UNROLL
      for (unsigned distance = 16; distance > 0; distance /= 2)
        own.total[r] = own.total[r] + exchange(own.total[r], distance);
      if (!shares) {
        fold<columns / 32>(all.sums[r], all.maximum[r], all.total[r], own.sums[r], own.maximum[r], own.total[r]);
        continue;
      }
      if (first + r >= tile.rows) continue;
      const std::uint64_t place =
          partial_place(arguments, tile.head_row(arguments, first + r), segment, tile.first_length);
      const std::uint32_t head_dim = arguments.pages.head_dim;
      store_row<columns>(arguments.partials, place, ElementKind::f32, head_dim, own.sums[r]);
      const float ends[2] = {own.maximum[r], own.total[r]};
      if (thread_index() % 32 == 0) store_elements<2>(arguments.partials, place + head_dim, ElementKind::f32, ends);
    }
  }
  if (shares) return;
  WEFT_UNROLL
  for (int r = 0; r < rows; ++r) {
    if (first + r >= tile.rows) continue;
    store_result<columns>(arguments, tile.head_row(arguments, first + r), all.sums[r], all.total[r]);
  }
}

// Folds the partial results of blocks that shared a sequence: one warp for each row.
template <int columns>
WEFT_DEVICE void finish_attention(const AttentionArguments& arguments) {
  const std::uint32_t row = block_index() * kFinishWarps + thread_index() / 32, head_dim = arguments.pages.head_dim;
  const std::uint32_t token = row / arguments.heads;
  if (token >= arguments.tokens) return;
  const std::uint32_t sequence =
      find_sequence(arguments.sequences, token, [&](std::uint32_t i) { return query_start(arguments, i); });
  const auto length = static_cast<std::uint32_t>(load(arguments.lengths + sequence));
  const std::uint32_t end = query_start(arguments, sequence + 1);
  const std::uint32_t first_length = length + 1 + query_start(arguments, sequence) - end;
  if (!is_shared(arguments,
                 (length + kSegmentTokens - 1) / kSegmentTokens - first_segment_seen(arguments, first_length)))
    return;
  const std::uint32_t seen = length + token + 1 - end;
  float sums[columns / 32] = {}, maximum = kLowest, total = 0;
  for (std::uint32_t segment = first_in_window(arguments, seen) / kSegmentTokens; segment * kSegmentTokens < seen;
       ++segment) {
    const std::uint64_t place = partial_place(arguments, row, segment, first_length);
    float next[columns / 32] = {}, ends[2];
    WEFT_UNROLL
    for (int i = 0; i < columns / 64; ++i) {
      const std::uint32_t column = i * 64 + thread_index() % 32 * 2;
      if (column < head_dim) load_elements<2>(arguments.partials, place + column, ElementKind::f32, next + 2 * i);
    }
    load_elements<2>(arguments.partials, place + head_dim, ElementKind::f32, ends);
    fold<columns / 32>(sums, maximum, total, next, ends[0], ends[1]);
  }
  store_result<columns>(arguments, row, sums, total);
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_DECODE_WARPS(columns) (columns == 256 ? kDecodeWarpsOf256 : kDecodeWarps)
#define WEFT_TILES(KERNEL, pages, P, columns, warps) \
  KERNEL(attention_##pages##_##columns##_decode, WEFT_THREADS(32 * WEFT_DECODE_WARPS(columns), kDecodeBlocks), \
         weft::cuda::attention<P, columns, WEFT_DECODE_WARPS(columns), kRowsOfWarp, kDecodeLoads>) \
  KERNEL(attention_##pages##_##columns##_prefill, WEFT_THREADS(32 * warps, kPrefillBlocks), \
         weft::cuda::attention<P, columns, warps, kRowsOfWarp, kPrefillLoads>)
#define WEFT_PAGES(KERNEL, pages, P) \
  WEFT_TILES(KERNEL, pages, P, 64, kPrefillWarps) WEFT_TILES(KERNEL, pages, P, 128, kPrefillWarps) \
  WEFT_TILES(KERNEL, pages, P, 256, kPrefillWarpsOf256)
#define WEFT_LIST(KERNEL) \
  WEFT_PAGES(KERNEL, bf16, Brain) WEFT_PAGES(KERNEL, f16, Half) \
  WEFT_TILES(KERNEL, f32, float, 64, kPrefillWarps) WEFT_TILES(KERNEL, f32, float, 128, kPrefillWarpsOf128F32) \
  KERNEL(finish_attention_64, 32 * kFinishWarps, weft::cuda::finish_attention<64>) \
  KERNEL(finish_attention_128, 32 * kFinishWarps, weft::cuda::finish_attention<128>) \
  KERNEL(finish_attention_256, 32 * kFinishWarps, weft::cuda::finish_attention<256>)
// clang-format on
WEFT_CUDA_KERNELS(attention, AttentionArguments, WEFT_LIST)
