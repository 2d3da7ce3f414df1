#pragma once

// Memory for the description of a step. It is allocated once, for the largest step, and refilled for each step.

#include <span>

#include "engine/run/step_input.h"
#include "tensor/batch.h"

namespace weft {

// The maximum size of a step.
struct StepLimits {
  std::int64_t rows = 0;
  std::int64_t sequences = 0;
  std::int64_t blocks = 0;  // pages of a sequence
};

// What StepInput has of a row besides its place.
struct RowKind {
  std::int64_t token_type = 0;
  std::int64_t adapter = 0;
};

class StepBuffer {
 public:
  StepBuffer() = default;  // no capacity
  explicit StepBuffer(StepLimits most);

  // Discards the previous step. The sequences of the new step have at most `blocks` pages, and its rows are of one
  // phase. begin() and the functions
  // below throw InternalError when the step exceeds the memory.
  void begin(std::int64_t blocks, Phase phase = Phase::prompt);
  // Adds a row to the sequence that the next add_sequence() ends.
  void add_row(std::int64_t id, std::int64_t position, std::int64_t slot, const RowKind& kind = {});
  // Ends the sequence of the rows since the last call: it has `length` tokens, these rows included, and its KV pages
  // are `pages`.
  void add_sequence(std::int64_t length, std::span<const std::int32_t> pages);
  // Requests logits for row `row` of the step.
  void want_logits(std::int64_t row);

  // The step; valid until begin().
  const StepInput& input();

 private:
  StepLimits most_;
  StepInput input_;
  std::shared_ptr<Storage> query_starts_, lengths_, block_table_;
  std::int64_t rows_ = 0, sequences_ = 0, blocks_ = 0, logit_rows_ = 0;
};

}  // namespace weft
