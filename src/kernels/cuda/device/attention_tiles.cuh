#pragma once

// Shared code of the attention kernels: the rows of a block, the tokens that they see in steps of 64 and segments of
// 256, and the copy of K and V of a step to shared memory.

#include "kernels/cuda/device/element_kinds.cuh"
#include "kernels/cuda/device/pages.cuh"
#include "kernels/cuda/device/shared_words.cuh"

namespace weft::cuda {

constexpr std::uint32_t kStepTokens = 64;
constexpr float kLowest =
    -3.40282347e38f;  // the maximum of no scores; finite, so that minus infinity relative to it gives 0

WEFT_DEVICE float minus_infinity() { return float_of(0xff800000u); }

// The first of `length` tokens that a row sees, and whether it sees one token.
WEFT_DEVICE std::uint32_t first_in_window(const AttentionArguments& arguments, std::uint32_t length) {
  return length > arguments.window ? length - arguments.window : 0;
}
WEFT_DEVICE bool sees(const AttentionArguments& arguments, std::uint32_t length, std::uint32_t token) {
  return length - 1 - token < arguments.window;
}

// The first segment of which a sequence's rows see something; the sequence's first row has `first_length` tokens up to
// its own.
WEFT_DEVICE std::uint32_t first_segment_seen(const AttentionArguments& arguments, std::uint32_t first_length) {
  return first_in_window(arguments, first_length) / kSegmentTokens;
}

// The rows of a block, and the tokens that they see.
struct QueryTile {
  std::uint32_t sequence;
  std::uint32_t first_token;   // of the sequence: its index in query
  std::uint32_t first_row;     // of the tile, among the sequence's rows of a KV head
  std::uint32_t rows;          // 0 if there are none left
  std::uint32_t first_length;  // number of tokens that row 0 of the sequence sees
  std::uint32_t segments;      // number of segments that the sequence's rows see

  // The number of tokens up to a row of the block, including its own; for rows after the last one, that of the last
  // row.
  WEFT_DEVICE std::uint32_t length(const AttentionArguments& arguments, std::uint32_t row) const {
    return first_length + quotient(first_row + (row < rows ? row : rows - 1), arguments.group);
  }
  // The first of them in its window. Windows of later rows begin and end later.
  WEFT_DEVICE std::uint32_t begin(const AttentionArguments& arguments, std::uint32_t row) const {
    return first_in_window(arguments, length(arguments, row));
  }
  // The index of a row of the block among the heads of all tokens.
  WEFT_DEVICE std::uint64_t head_row(const AttentionArguments& arguments, std::uint32_t row) const {
    const std::uint32_t group = arguments.group.divisor, token = quotient(first_row + row, arguments.group);
    return product(first_token + token, arguments.heads) + block_row() * group + (first_row + row - token * group);
  }
  // The index of the first column of the row's query.
  WEFT_DEVICE std::uint64_t query_place(const AttentionArguments& arguments, std::uint32_t row) const {
    const std::uint32_t group = arguments.group.divisor, token = quotient(first_row + row, arguments.group);
    const std::uint32_t head = block_row() * group + first_row + row - token * group;
    return product(first_token + token, arguments.token_stride) + product(head, arguments.pages.head_dim);
  }
};

// The last sequence whose `first(i)` is at most `number`.
template <class First>
WEFT_DEVICE std::uint32_t find_sequence(std::uint32_t sequences, std::uint32_t number, First first) {
  std::uint32_t low = 0, high = sequences;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    if (first(middle) <= number) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
WEFT_DEVICE std::uint32_t query_start(const AttentionArguments& arguments, std::uint32_t sequence) {
  return static_cast<std::uint32_t>(load(arguments.query_starts + sequence));
}

// Finds tile `number`, with tiles of `size` rows. The first tile of sequence i leaves room for a partial tile for each
// token or for each sequence, so that the number of blocks depends on the numbers of tokens and sequences alone.
WEFT_DEVICE QueryTile find_tile(const AttentionArguments& arguments, std::uint32_t number, std::uint32_t size) {
  const std::uint32_t group = arguments.group.divisor;
  const auto first_tile = [&](std::uint32_t i) {
    const std::uint32_t token = query_start(arguments, i);
    return arguments.token_tiles > 0 ? token * arguments.token_tiles : token * group / size + i;
  };
  const std::uint32_t sequence = find_sequence(arguments.sequences, number, first_tile);
  const std::uint32_t start = query_start(arguments, sequence);
  const std::uint32_t tokens = query_start(arguments, sequence + 1) - start;
  const auto length = static_cast<std::uint32_t>(load(arguments.lengths + sequence));
  const std::uint32_t first_row = (number - first_tile(sequence)) * size, rows = tokens * group;
  const std::uint32_t left = first_row < rows ? rows - first_row : 0;
  const std::uint32_t first_length = length + 1 - tokens;
  return {sequence,     start,
          first_row,    left < size ? left : size,
          first_length, (length + kSegmentTokens - 1) / kSegmentTokens - first_segment_seen(arguments, first_length)};
}

WEFT_DEVICE bool is_shared(const AttentionArguments& arguments, std::uint32_t segments) {
  return arguments.sharers.divisor > 1 && segments > 1 && segments <= arguments.room;
}

// Tokens [start, start + count) of a tile's KV head.
struct Step {
  const std::int32_t* table;  // the sequence's pages
  std::uint32_t head;
  std::uint32_t start, count;

  // The number of its tokens before token `end` of the sequence.
  WEFT_DEVICE std::uint32_t before(std::uint32_t end) const {
    const std::uint32_t ahead = end > start ? end - start : 0;
    return ahead < count ? ahead : count;
  }
  WEFT_DEVICE PageToken token(const PagesPlace& pages, std::uint32_t number) const {
    const PageToken at = token_of_slot(pages, start + number);
    return {static_cast<std::uint32_t>(load(table + at.page)), at.token};
  }
};

template <class P>
constexpr std::uint32_t kOfChunk = 16 / sizeof(P);  // elements of 16 bytes

// One element's bits.
template <class P>
WEFT_DEVICE std::uint32_t element_bits(const void* from, std::uint64_t place) {
  if constexpr (sizeof(P) == 4) {
    return load(static_cast<const std::uint32_t*>(from) + place);
  } else {
    return load(static_cast<const std::uint16_t*>(from) + place);
  }
}

// Loads one column of as many tokens as fit 16 bytes, from `first` on. Tokens after the step's end have any value or 0.
template <class P>
WEFT_DEVICE FourWords load_keys(const AttentionArguments& arguments, const Step& step, const PageToken& at,
                                std::uint32_t first, std::uint32_t column) {
  const PagesPlace& pages = arguments.pages;
  const std::uint64_t in_page = product(column, pages.block.divisor);
  if (arguments.has_chunks) {
    const P* from = static_cast<const P*>(pages.pages) + (key_place(pages, at, step.head) + in_page);
    return load(reinterpret_cast<const FourWords*>(from));
  }
  FourWords words = {};
  // Not unrolled, so that this rare path takes no registers from the other one.
  WEFT_UNROLL_BY(1)
  for (std::uint32_t i = 0; i < kOfChunk<P> && first + i < step.count; ++i) {
    const std::uint64_t place = key_place(pages, step.token(pages, first + i), step.head) + in_page;
    const std::uint32_t bits = element_bits<P>(pages.pages, place) << i * sizeof(P) * 8 % 32;
    WEFT_UNROLL
    for (std::uint32_t word = 0; word < 4; ++word) words.word[word] |= word == i * sizeof(P) / 4 ? bits : 0u;
  }
  return words;
}

// The layout of K and V of a step in shared memory: the number of loads of 16 bytes that a thread has in flight, and
// the number of unused words after each row of the tile.
struct Staging {
  std::uint32_t threads;
  int loads = 1;
  std::uint32_t padding = 0;
};

// Copies K of a step as [columns of the head][64 tokens]; tokens after the step's end are 0 or any value.
template <class P, Staging how, class Words>
WEFT_DEVICE void stage_keys(const AttentionArguments& arguments, const Step& step, Words& tile) {
  constexpr std::uint32_t kChunks = kStepTokens / kOfChunk<P>, kStride = 4 * kChunks + how.padding;
  const std::uint32_t chunk = thread_index() % kChunks, first = chunk * kOfChunk<P>;
  const bool is_live = first < step.count;
  const PageToken at = is_live ? step.token(arguments.pages, first) : PageToken{};
  [[maybe_unused]] constexpr int kLoads = how.loads;
  WEFT_UNROLL_BY(kLoads)
  for (std::uint32_t column = thread_index() / kChunks; column < arguments.pages.head_dim;
       column += how.threads / kChunks) {
    const FourWords words = is_live ? load_keys<P>(arguments, step, at, first, column) : FourWords{};
    store_four(tile, column * kStride + chunk * 4, words);
  }
}

// Copies V of a step as [tokens before `end`][columns]; tokens after the step's end and columns after the head's are 0.
template <class P, int columns, Staging how, class Words>
WEFT_DEVICE void stage_values(const AttentionArguments& arguments, const Step& step, std::uint32_t end, Words& tile) {
  constexpr std::uint32_t kChunks = columns / kOfChunk<P>, kStride = 4 * kChunks + how.padding;
  const PagesPlace& pages = arguments.pages;
  const std::uint32_t chunk = thread_index() % kChunks, column = chunk * kOfChunk<P>;
  [[maybe_unused]] constexpr int kLoads = how.loads;
  WEFT_UNROLL_BY(kLoads)
  for (std::uint32_t token = thread_index() / kChunks; token < end; token += how.threads / kChunks) {
    FourWords words = {};
    if (token < step.count && column < pages.head_dim) {
      const std::uint64_t place = value_place(pages, step.token(pages, token), step.head) + column;
      words = load(reinterpret_cast<const FourWords*>(static_cast<const P*>(pages.pages) + place));
    }
    store_four(tile, token * kStride + chunk * 4, words);
  }
}

// The index of a row's partial result for a segment, after those of earlier segments that its sequence sees: head_dim
// sums, the maximum, the total.
WEFT_DEVICE std::uint64_t partial_place(const AttentionArguments& arguments, std::uint64_t row, std::uint32_t segment,
                                        std::uint32_t first_length) {
  const std::uint32_t number = segment - first_segment_seen(arguments, first_length);
  return (row * arguments.room + number) * (arguments.pages.head_dim + 2);
}

}  // namespace weft::cuda
