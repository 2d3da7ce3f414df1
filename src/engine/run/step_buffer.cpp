#include "engine/run/step_buffer.h"

#include <algorithm>

#include "base/error.h"

namespace weft {
namespace {

Tensor numbers(std::int64_t most) {
  return {.meta = Meta::tensor(DType::i64, {0}),
          .storage = Storage::allocate(most * static_cast<std::int64_t>(sizeof(std::int64_t)))};
}

std::shared_ptr<Storage> entries(std::int64_t most) {
  return Storage::allocate(most * static_cast<std::int64_t>(sizeof(std::int32_t)), Storage::PageSize::small);
}

std::int32_t* entries_of(const std::shared_ptr<Storage>& storage) {
  return reinterpret_cast<std::int32_t*>(storage->data());
}

}  // namespace

StepBuffer::StepBuffer(StepLimits most)
    : most_(most),
      input_{.ids = numbers(most.rows),
             .positions = numbers(most.rows),
             .slots = numbers(most.rows),
             .token_types = numbers(most.rows),
             .adapters = numbers(most.rows),
             .batch = {.meta = Meta::batch(), .storage = Storage::allocate(sizeof(Batch))},
             .logit_rows = numbers(most.rows)},
      query_starts_(entries(most.sequences + 1)),
      lengths_(entries(most.sequences)),
      block_table_(entries(most.sequences * most.blocks)) {}

void StepBuffer::begin(std::int64_t blocks, Phase phase) {
  CHECK(blocks <= most_.blocks, "a sequence of a step has at most {} pages, but is to have {}", most_.blocks, blocks);
  blocks_ = blocks;
  input_.phase = phase;
  rows_ = sequences_ = logit_rows_ = 0;
}

void StepBuffer::add_row(std::int64_t id, std::int64_t position, std::int64_t slot, const RowKind& kind) {
  CHECK(rows_ < most_.rows, "a step has at most {} rows", most_.rows);
  input_.ids.as<std::int64_t>()[rows_] = id;
  input_.positions.as<std::int64_t>()[rows_] = position;
  input_.slots.as<std::int64_t>()[rows_] = slot;
  input_.token_types.as<std::int64_t>()[rows_] = kind.token_type;
  input_.adapters.as<std::int64_t>()[rows_] = kind.adapter;
  ++rows_;
}

void StepBuffer::add_sequence(std::int64_t length, std::span<const std::int32_t> pages) {
  CHECK(sequences_ < most_.sequences, "a step has at most {} sequences", most_.sequences);
  CHECK(std::ssize(pages) <= blocks_, "a sequence has {} pages in a step of {}", pages.size(), blocks_);
  std::int32_t* const table = entries_of(block_table_) + sequences_ * blocks_;
  std::fill(std::copy(pages.begin(), pages.end(), table), table + blocks_, 0);
  entries_of(lengths_)[sequences_] = static_cast<std::int32_t>(length);
  entries_of(query_starts_)[++sequences_] = static_cast<std::int32_t>(rows_);
}

void StepBuffer::want_logits(std::int64_t row) {
  CHECK(logit_rows_ < most_.rows, "a step gives the logits of at most {} rows", most_.rows);
  input_.logit_rows.as<std::int64_t>()[logit_rows_++] = row;
}

const StepInput& StepBuffer::input() {
  for (Tensor* rows : {&input_.ids, &input_.positions, &input_.slots, &input_.token_types, &input_.adapters})
    rows->meta.shape[0] = rows_;
  input_.logit_rows.meta.shape[0] = logit_rows_;
  *input_.batch.as<Batch>() = {.sequences = static_cast<std::int32_t>(sequences_),
                               .query_starts = entries_of(query_starts_),
                               .lengths = entries_of(lengths_),
                               .block_table = entries_of(block_table_),
                               .max_blocks = static_cast<std::int32_t>(blocks_)};
  return input_;
}

}  // namespace weft
