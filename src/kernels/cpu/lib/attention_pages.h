#pragma once

// K and V of one step of attention, as the tiles of attention_step.h read them: elements of KV pages where they are, or
// what they were converted to in the scratch of the task.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/attention_codes.h"
#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/float_vector_operations.h"
#include "kernels/cpu/lib/squares.h"

namespace weft::cpu {
namespace {

// Tokens whose K and V have one fixed stride: the unit in which pages are addressed.
constexpr int kChunk = 16;
constexpr int kChunks = kAttentionStep / kChunk;

// The elements of a step: the pages' own, or those that codes are converted to.
template <class Page>
struct StepElementOf {
  using Type = Page;
};
template <>
struct StepElementOf<Float8> {
  using Type = Half;
};
template <>
struct StepElementOf<BlockQ8> {
  using Type = Code8;
};
template <class Page>
using StepElement = typename StepElementOf<Page>::Type;

// Whether elements have a scale for each token and kBlockElements columns.
template <class Element>
constexpr bool kHasScales = false;
template <>
constexpr bool kHasScales<Code8> = true;

// The rows of codes of a step: the address of each chunk's 16 rows of K and of V, which are adjacent.
struct CodeRows {
  const std::uint8_t* keys[kChunks];
  const std::uint8_t* values[kChunks];
};

// What tiles prefetch while they read the keys or the values of kAheadTokens tokens: as many bytes of the tokens whose
// keys or values are read next. In pages of 16 tokens a chunk's keys are contiguous, as its values are in all pages.
constexpr int kAheadChunks = 4;
constexpr int kAheadTokens = kAheadChunks * kChunk;
struct Ahead {
  const char* chunks[kAheadChunks];
};

// `keys[c]` is K [head_dim] at `key_stride` of chunk c's 16 tokens, `values[c]` is V [16] at `value_stride`. Scales are
// [head_dim / kBlockElements][kAttentionStep].
//
// Codes are converted for all tiles of a task at once, or, if there is only one tile, by the tile itself right before
// it uses them, so that the results stay in L1.
template <class Element>
struct Step {
  const Element* keys[kChunks];
  const Element* values[kChunks];
  std::int64_t key_stride;
  std::int64_t value_stride;
  float* key_scales;
  float* value_scales;
  Half* gathered;                                   // scales, before they are converted
  Ahead after_keys[kAttentionStep / kAheadTokens];  // what to prefetch while these keys or values are read
  Ahead after_values[kAttentionStep / kAheadTokens];
  std::int64_t row_bytes;  // of K or V of one token in its page
  bool converts;           // when tiles use it
  CodeRows rows;
  std::uint8_t* transposed;  // keys of kTokensTogether tokens
};

// The offset of a column in a row of V.
template <class Element>
constexpr std::int64_t value_offset(std::int64_t column) {
  return column;
}
template <>
constexpr std::int64_t value_offset<Code8>(std::int64_t column) {
  return code_offset<BlockQ8>(column);
}

// From the K of a page's KV head to its V.
inline std::int64_t elements_to_values(const AttentionTask& task) {
  return task.keys_are_values ? 0 : task.block * task.head_dim;
}

// The addresses of a token's K column and V row, which is the K column if the keys are the values.
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
  return {keys + offset, keys + elements_to_values(task) + offset * task.head_dim};
}

// Calls visit(chunk, page, offset) for each chunk of a step in pages of whole chunks, with the first token's page and
// offset there. A division for each chunk would cost as much as its softmax.
template <class Visit>
inline void for_each_chunk(const AttentionTask& task, std::int64_t start, int count, Visit visit) {
  const auto block = static_cast<std::uint32_t>(task.block), first = static_cast<std::uint32_t>(start);
  std::uint32_t entry = first / block, offset = first % block;
  for (int c = 0; c * kChunk < count; ++c) {
    visit(c, std::int64_t{task.block_table[entry]}, std::int64_t{offset});
    offset += kChunk;
    if (offset == block) {
      offset = 0;
      ++entry;
    }
  }
}

// Stores the keys of 16 tokens, [head_dim] at `key_stride`, as rows of values [16][head_dim].
template <class Element>
inline void values_of_keys(const Element* keys, std::int64_t key_stride, std::int64_t head_dim, Element* values) {
  constexpr int kSquare = kSquareOf<Element>;
  for (int t = 0; t < kChunk; t += kSquare)
    for (std::int64_t d = 0; d < head_dim; d += kSquare)
      transpose_square(keys + d * key_stride + t, key_stride, values + t * head_dim + d, head_dim);
}

// Finds the addresses of the step that begins at `start` and has `count` tokens.
template <class Page>
void find_step(const AttentionTask& task, std::int64_t start, int count, void* scratch, Step<Page>& step) {
  const int chunks = (count + kChunk - 1) / kChunk;
  const std::int64_t width = task.head_dim;
  step.value_stride = width;
  if (task.block % kChunk == 0) {
    step.key_stride = task.block;
    for_each_chunk(task, start, count, [&](int c, std::int64_t page, std::int64_t offset) {
      const Page* keys = static_cast<const Page*>(task.pages) + page * task.page_elements + task.key_offset;
      step.keys[c] = keys + offset;
      step.values[c] = keys + elements_to_values(task) + offset * width;
      if (!task.keys_are_values) return;
      Page* values = static_cast<Page*>(scratch) + c * kChunk * width;
      values_of_keys(step.keys[c], step.key_stride, width, values);
      step.values[c] = values;
    });
    return;
  }
  step.key_stride = kChunk;
  for (int c = 0; c < chunks; ++c) {
    Page* keys = static_cast<Page*>(scratch) + 2 * c * kChunk * width;
    Page* values = keys + kChunk * width;
    for (int t = 0; t < kChunk; ++t) {
      const bool seen = c * kChunk + t < count;
      // After the last token, its K is used again, so that nothing uninitialised is read.
      const std::int64_t token = start + (seen ? c * kChunk + t : count - 1);
      const TokenAddress<Page> address = find_token<Page>(task, token);
      for (std::int64_t d = 0; d < width; ++d) keys[d * kChunk + t] = address.key[d * task.block];
      if (seen && !task.keys_are_values)
        std::memcpy(values + t * width, address.value, sizeof(Page) * static_cast<std::uint64_t>(width));
    }
    if (task.keys_are_values) values_of_keys(keys, kChunk, width, values);
    step.keys[c] = keys;
    step.values[c] = values;
  }
}

template <class Codes>
inline TokenAddress<std::uint8_t> find_codes(const AttentionTask& task, std::int64_t token) {
  const std::uint32_t block = static_cast<std::uint32_t>(task.block), position = static_cast<std::uint32_t>(token);
  const std::int64_t page = task.block_table[position / block], offset = position % block;
  const std::int64_t key = page * task.page_elements + task.key_offset + offset * task.head_dim;
  const auto* pages = static_cast<const std::uint8_t*>(task.pages);
  return {pages + bytes_before<Codes>(key), pages + bytes_before<Codes>(key + elements_to_values(task))};
}

// Finds the rows of the step that begins at `start` and has `count` tokens. After the last token, its row or other
// bytes of its page follow. Chunks after the last one are the last one again. Returns the bytes of scratch that it
// used.
template <class Codes>
std::int64_t find_rows(const AttentionTask& task, std::int64_t start, int count, std::uint8_t* scratch,
                       CodeRows& rows) {
  const std::int64_t row_bytes = bytes_before<Codes>(task.head_dim);
  const bool copies = task.block % kChunk != 0;
  const int chunks = (count + kChunk - 1) / kChunk;
  if (!copies) {
    const auto* pages = static_cast<const std::uint8_t*>(task.pages);
    const std::int64_t page_bytes = bytes_before<Codes>(task.page_elements);
    const std::uint8_t* keys = pages + bytes_before<Codes>(task.key_offset);
    for_each_chunk(task, start, count, [&](int c, std::int64_t page, std::int64_t offset) {
      rows.keys[c] = keys + page * page_bytes + offset * row_bytes;
      rows.values[c] = rows.keys[c] + bytes_before<Codes>(elements_to_values(task));
    });
  }
  for (int c = 0; c < chunks && copies; ++c) {
    std::uint8_t* keys = scratch + 2 * c * kChunk * row_bytes;
    std::uint8_t* values = keys + kChunk * row_bytes;
    for (int t = 0; t < kChunk; ++t) {
      const int place = c * kChunk + t < count ? c * kChunk + t : count - 1;
      const auto token = find_codes<Codes>(task, start + place);
      std::memcpy(keys + t * row_bytes, token.key, static_cast<std::uint64_t>(row_bytes));
      std::memcpy(values + t * row_bytes, token.value, static_cast<std::uint64_t>(row_bytes));
    }
    rows.keys[c] = keys;
    rows.values[c] = values;
  }
  for (int c = chunks; c < kChunks; ++c) {
    rows.keys[c] = rows.keys[chunks - 1];
    rows.values[c] = rows.values[chunks - 1];
  }
  return copies ? 2 * kAttentionStep * row_bytes : 0;
}

// Keys that were transposed: [head_dim][kTokensTogether] for each group of tokens. If tiles convert them, there is room
// for two groups, the tokens of the widest tile.
template <class Element>
inline void set_transposed(Step<Element>& step, const Element* keys, std::int64_t head_dim) {
  step.key_stride = kTokensTogether;
  for (int c = 0; c < kChunks; ++c) {
    const int token = step.converts ? c * kChunk % (2 * kTokensTogether) : c * kChunk, within = token % kTokensTogether;
    step.keys[c] = keys + (token - within) * head_dim + within;
  }
}

// Gathers the scales of the rows of kAheadTokens tokens, and then converts them: a vector that is loaded right after
// its elements were stored stalls.
[[gnu::noinline]] inline void load_scales(const std::uint8_t* const* rows, std::int64_t head_dim, Half* gathered,
                                          float* scales) {
  const std::int64_t blocks = head_dim / kBlockElements, row_bytes = bytes_before<BlockQ8>(head_dim);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (int c = 0; c < kAheadChunks; ++c) {
      const std::uint8_t* from = rows[c] + b * static_cast<std::int64_t>(sizeof(BlockQ8));
      Half* to = gathered + b * kAheadTokens + c * kChunk;
#pragma GCC unroll 4
      for (int t = 0; t < kChunk; ++t, from += row_bytes) std::memcpy(to + t, from, sizeof(Half));
    }
  }
  for (std::int64_t b = 0; b < blocks; ++b)
    for (int t = 0; t < kAheadTokens; t += kLanes)
      store(scales + b * kAttentionStep + t, load(gathered + b * kAheadTokens + t));
}

// Converts the keys of kTokensTogether tokens from `token` on, and the values of a chunk.
template <class Element>
inline void convert_keys(const Step<Element>&, int, std::int64_t) {}
inline void convert_keys(const Step<Half>& step, int token, std::int64_t head_dim) {
  transpose_keys<Float8>(step.rows.keys + token / kChunk, head_dim, step.transposed);
  widen(step.transposed, kTokensTogether * head_dim, const_cast<Half*>(step.keys[token / kChunk]));
}
inline void convert_keys(const Step<Code8>& step, int token, std::int64_t head_dim) {
  auto* to = const_cast<Code8*>(step.keys[token / kChunk]);
  transpose_keys<BlockQ8>(step.rows.keys + token / kChunk, head_dim, &to->bits);
  if (token % kAheadTokens == 0)
    load_scales(step.rows.keys + token / kChunk, head_dim, step.gathered, step.key_scales + token);
}
template <class Element>
constexpr bool kConvertsValues = false;
template <>
constexpr bool kConvertsValues<Half> = true;
template <>
constexpr bool kConvertsValues<Code8> = true;
template <class Element>
inline void convert_values(const Step<Element>&, int, std::int64_t) {}
inline void convert_values(const Step<Half>& step, int chunk, std::int64_t head_dim) {
  widen(step.rows.values[chunk], kChunk * head_dim, const_cast<Half*>(step.values[chunk]));
}
inline void convert_values(const Step<Code8>& step, int chunk, std::int64_t head_dim) {
  if (chunk % kAheadChunks == 0)
    load_scales(step.rows.values + chunk, head_dim, step.gathered, step.value_scales + chunk * kChunk);
}

// Begins the step that begins at `start` and has `count` tokens. Values become f16.
inline void find_codes_step(const AttentionTask& task, std::int64_t start, int count, std::uint8_t* scratch,
                            Step<Half>& step) {
  const std::int64_t width = task.head_dim;
  scratch += find_rows<Float8>(task, start, count, scratch, step.rows);
  auto* keys = reinterpret_cast<Half*>(scratch);
  Half* values = keys + kAttentionStep * width;
  step.transposed = reinterpret_cast<std::uint8_t*>(values + kAttentionStep * width);
  set_transposed(step, keys, width);
  step.value_stride = width;
  for (int c = 0; c < kChunks; ++c) step.values[c] = values + (step.converts ? c % kAheadChunks : c) * kChunk * width;
}

// The same for q8_0: keys become transposed codes, and values stay in their pages.
inline void find_codes_step(const AttentionTask& task, std::int64_t start, int count, std::uint8_t* scratch,
                            Step<Code8>& step) {
  const std::int64_t width = task.head_dim, scales = width / kBlockElements * kAttentionStep;
  auto* key_scales = reinterpret_cast<float*>(scratch);
  float* value_scales = key_scales + scales;
  auto* gathered = reinterpret_cast<Half*>(value_scales + scales);
  auto* transposed = reinterpret_cast<Code8*>(gathered + scales);
  find_rows<BlockQ8>(task, start, count, &transposed->bits + kAttentionStep * width, step.rows);
  set_transposed(step, transposed, width);
  step.value_stride = bytes_before<BlockQ8>(width);
  for (int c = 0; c < kChunks; ++c) step.values[c] = reinterpret_cast<const Code8*>(step.rows.values[c]);
  step.gathered = gathered;
  step.key_scales = key_scales;
  step.value_scales = value_scales;
}

// The chunks of a step from `first` on; the last one again after it.
template <class Element>
inline Ahead ahead_of(const Element* const (&chunks)[kChunks], int first, int count) {
  Ahead ahead;
  for (int i = 0; i < kAheadChunks; ++i)
    ahead.chunks[i] = reinterpret_cast<const char*>(chunks[first + i < count ? first + i : count - 1]);
  return ahead;
}
// Sets what is prefetched during a step. Its values are followed by the keys of the next step, if the task has one.
template <class Page, class Element, class Chunks>
inline void set_ahead(const AttentionTask& task, std::int64_t start, int count, std::int64_t last, const Chunks& chunks,
                      Step<Element>& step) {
  const int chunk_count = (count + kChunk - 1) / kChunk;
  for (int i = 0; i < kAttentionStep / kAheadTokens; ++i) {
    const int next = (i + 1) * kAheadChunks;
    const bool has_next = next < chunk_count;
    step.after_keys[i] = ahead_of(has_next ? chunks.keys : chunks.values, has_next ? next : 0, chunk_count);
    step.after_values[i] = ahead_of(chunks.values, has_next ? next : 0, chunk_count);
  }
  const std::int64_t next = start + kAttentionStep;
  if (next >= last || task.block % kChunk != 0) return;
  const int ahead_tokens = last - next < kAheadTokens ? static_cast<int>(last - next) : kAheadTokens;
  const auto* pages = static_cast<const char*>(task.pages);
  for_each_chunk(task, next, ahead_tokens, [&](int c, std::int64_t page, std::int64_t offset) {
    const std::int64_t key = page * task.page_elements + task.key_offset + offset * task.head_dim;
    step.after_values[kAttentionStep / kAheadTokens - 1].chunks[c] = pages + bytes_before<Page>(key);
  });
}

// Finds the step that begins at `start` and has `count` tokens, for one tile or several. The task's tokens end at
// `last`.
template <class Page>
inline void find_any_step(const AttentionTask& task, std::int64_t start, int count, std::int64_t last, bool one_tile,
                          void* scratch, Step<StepElement<Page>>& step) {
  step.converts = kIsCodes<Page> && one_tile;
  step.row_bytes = bytes_before<Page>(task.head_dim);
  if constexpr (kIsCodes<Page>) {
    find_codes_step(task, start, count, static_cast<std::uint8_t*>(scratch), step);
    set_ahead<Page>(task, start, count, last, step.rows, step);
    if (one_tile) return;
    for (int t = 0; t < count; t += kTokensTogether) convert_keys(step, t, task.head_dim);
    for (int c = 0; c * kChunk < count; ++c) convert_values(step, c, task.head_dim);
  } else {
    find_step(task, start, count, scratch, step);
    set_ahead<Page>(task, start, count, last, step, step);
  }
}

}  // namespace
}  // namespace weft::cpu
