#include "engine/padded_step.h"

#include <algorithm>

#include "tensor/batch.h"

namespace weft {
namespace {

// The batch with one more sequence of `rows` rows, all of whose pages are the first one.
Tensor with_sequence(const Batch& batch, std::int64_t rows, std::int64_t block) {
  const auto pages = static_cast<std::int32_t>((rows + block - 1) / block);
  const std::int32_t widest = std::max(batch.max_blocks, pages), sequences = batch.sequences;
  std::vector<std::int32_t> starts(batch.query_starts, batch.query_starts + sequences + 1);
  std::vector<std::int32_t> lengths(batch.lengths, batch.lengths + sequences);
  std::vector<std::int32_t> table(static_cast<std::size_t>((sequences + 1) * widest), 0);
  for (std::int32_t i = 0; i < sequences; ++i)
    std::copy_n(batch.block_table + i * batch.max_blocks, batch.max_blocks, table.begin() + i * widest);
  starts.push_back(starts.back() + static_cast<std::int32_t>(rows));
  lengths.push_back(static_cast<std::int32_t>(rows));
  return make_batch(starts, lengths, table);
}

}  // namespace

PaddedStep::PaddedStep(const StepInput& step, std::int64_t rows, std::int64_t block) : input_(step) {
  const auto missing = rows - static_cast<std::int64_t>(step.ids.size());
  if (missing <= 0) return;
  const auto padded = [&](std::span<const std::int64_t> values, std::int64_t value) {
    std::vector<std::int64_t> longer(values.begin(), values.end());
    longer.resize(static_cast<std::size_t>(rows), value);
    return longer;
  };
  ids_ = padded(step.ids, 0);
  positions_ = padded(step.positions, 0);
  slots_ = padded(step.slots, -1);
  input_.ids = ids_;
  input_.positions = positions_;
  input_.slots = slots_;
  input_.batch = with_sequence(batch_of(step.batch), missing, block);
}

PaddedStep empty_step(std::int64_t rows, std::int64_t block) {
  const std::int32_t starts[] = {0};
  StepInput nothing;
  nothing.batch = make_batch(starts, {}, {});
  return PaddedStep(nothing, rows, block);
}

}  // namespace weft
