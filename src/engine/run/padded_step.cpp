#include "engine/run/padded_step.h"

#include <algorithm>

#include "base/error.h"

namespace weft {
namespace {

std::int64_t blocks_of(std::int64_t rows, std::int64_t block) { return (rows + block - 1) / block; }

// Adds a sequence of `rows` rows that are written nowhere. All its pages are the first page.
void add_padding(StepBuffer& into, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) into.add_row(0, 0, -1);
  into.add_sequence(rows, {});
}

void copy_sequences(const StepInput& step, StepBuffer& into) {
  const Batch& batch = batch_of(step.batch);
  const auto *const ids = step.ids.as<const std::int64_t>(), *const positions = step.positions.as<const std::int64_t>(),
                    *const slots = step.slots.as<const std::int64_t>(),
                    *const types = step.token_types.as<const std::int64_t>(),
                    *const adapters = step.adapters.as<const std::int64_t>();
  for (std::int32_t i = 0; i < batch.sequences; ++i) {
    for (std::int32_t row = batch.query_starts[i]; row < batch.query_starts[i + 1]; ++row)
      into.add_row(ids[row], positions[row], slots[row], {.token_type = types[row], .adapter = adapters[row]});
    into.add_sequence(batch.lengths[i], {batch.block_table + std::int64_t{i} * batch.max_blocks,
                                         static_cast<std::size_t>(batch.max_blocks)});
  }
  for (std::int64_t i = 0; i < step.logit_row_count(); ++i)
    into.want_logits(step.logit_rows.as<const std::int64_t>()[i]);
}

}  // namespace

const StepInput& padded_step(const StepInput& step, std::int64_t rows, std::int64_t block, StepBuffer& into) {
  const std::int64_t missing = rows - step.rows();
  if (missing <= 0) return step;
  into.begin(std::max<std::int64_t>(batch_of(step.batch).max_blocks, blocks_of(missing, block)), step.phase);
  copy_sequences(step, into);
  add_padding(into, missing);
  return into.input();
}

const StepInput& padded_decode_step(const StepInput& step, std::int64_t rows, std::int64_t blocks, StepBuffer& into) {
  CHECK(is_decode_step(step), "a step of {} rows and {} sequences decodes no single tokens", step.rows(),
        batch_of(step.batch).sequences);
  into.begin(blocks, step.phase);
  copy_sequences(step, into);
  for (std::int64_t row = step.rows(); row < rows; ++row) add_padding(into, 1);
  for (std::int64_t row = step.logit_row_count(); row < rows; ++row) into.want_logits(0);
  return into.input();
}

}  // namespace weft
