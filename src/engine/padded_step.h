#pragma once

// A step with rows behind its own, up to the size that it was captured for. They are of sequences that have no pages to
// write and read the first page of all, and nobody reads what becomes of them.

#include "engine/step_buffer.h"

namespace weft {

// The step with as many rows more as `rows` takes, all of one sequence, written into `into`, which has room for a
// sequence more than the step has; the step itself where none is missing. `block`: tokens of a page.
const StepInput& padded_step(const StepInput& step, std::int64_t rows, std::int64_t block, StepBuffer& into);

// A decode step, which has one row of each sequence, in numbers that `rows` alone says: each missing row is a sequence
// of its own, every sequence has room for `blocks` pages, and as many rows want logits, those of the step first.
const StepInput& padded_decode_step(const StepInput& step, std::int64_t rows, std::int64_t blocks, StepBuffer& into);

inline bool is_decode_step(const StepInput& step) { return step.rows() == batch_of(step.batch).sequences; }

}  // namespace weft
