#pragma once

// Where a step is written down: memory that is taken once, for the largest step, and filled anew for each.

#include <span>

#include "engine/step_input.h"
#include "tensor/batch.h"

namespace weft {

// The most that a step has.
struct StepLimits {
  std::int64_t rows = 0;
  std::int64_t sequences = 0;
  std::int64_t blocks = 0;  // pages of a sequence
};

class StepBuffer {
 public:
  StepBuffer() = default;  // of nothing
  explicit StepBuffer(StepLimits most);

  // Forgets the step that was there. The sequences of the next one have `blocks` pages at most. This and what follows
  // is an InternalError for more than there is memory for.
  void begin(std::int64_t blocks);
  // One more row of the sequence that comes next.
  void add_row(std::int64_t id, std::int64_t position, std::int64_t slot);
  // The sequence of the rows since the last one: `length` tokens, these among them, whose KV pages are `pages`.
  void add_sequence(std::int64_t length, std::span<const std::int32_t> pages);
  // Row `row` of the step wants logits.
  void want_logits(std::int64_t row);

  // What was added; valid until begin.
  const StepInput& input();

 private:
  StepLimits most_;
  StepInput input_;
  std::shared_ptr<Storage> query_starts_, lengths_, block_table_;
  std::int64_t rows_ = 0, sequences_ = 0, blocks_ = 0, logit_rows_ = 0;
};

}  // namespace weft
