#pragma once

// The blocks of a sequence's pages in which a recurrent layer computes in one step: see ops/causal_conv1d.h.

#include <cstdint>
#include <cstring>

#include "tensor/tensor_view.h"

namespace weft {

// Rows of one sequence whose tokens are in one block of pages.
struct RecurrentRun {
  std::int64_t first_row = 0, end_row = 0;
  std::int32_t page = 0;         // the block's, in which the state is left
  std::int32_t page_before = 0;  // that has the state before these rows; may be `page`
  bool begins_sequence = false;  // there is no state before these rows, and no page_before
  bool is_padding = false;       // the rows have no pages
};

// Calls take(run) for all rows of a sequence in this step, in order. `slots` are those of the step.
template <class Take>
void for_each_recurrent_run(const Batch& batch, const TensorView& slots, std::int32_t sequence, std::int64_t block,
                            const Take& take) {
  const std::int32_t* table = batch.block_table + std::int64_t{sequence} * batch.max_blocks;
  const std::int64_t end_row = batch.query_starts[sequence + 1];
  std::int64_t row = batch.query_starts[sequence], position = batch.lengths[sequence] - (end_row - row);
  while (row < end_row) {
    const std::int64_t index = position / block, room = block - position % block;
    RecurrentRun run{.first_row = row, .end_row = row + room < end_row ? row + room : end_row, .page = table[index]};
    run.begins_sequence = position == 0;
    run.is_padding = slots.as<std::int64_t>()[row * slots.stride[0]] < 0;
    if (!run.begins_sequence) run.page_before = table[(position - 1) / block];
    take(run);
    position += run.end_row - row;
    row = run.end_row;
  }
}

// Brings the state before the run to the page in which it is left. `pages` are f32, with `size` of them each from
// `offset` on.
inline void begin_recurrent_run(const RecurrentRun& run, float* pages, std::int64_t page_elements, std::int64_t offset,
                                std::int64_t size) {
  float* state = pages + run.page * page_elements + offset;
  const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
  if (run.begins_sequence) {
    std::memset(state, 0, bytes);
  } else if (run.page_before != run.page) {
    std::memcpy(state, pages + run.page_before * page_elements + offset, bytes);
  }
}

}  // namespace weft
