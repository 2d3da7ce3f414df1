#pragma once

// Pads a step with dummy rows to a captured size. The dummy rows belong to sequences that write no pages and whose
// pages are all the first page; nothing uses their results.

#include "engine/run/step_buffer.h"

namespace weft {

// The step padded to `rows` rows with one dummy sequence, written into `into`, which must have room for one sequence
// more than the step has. Returns `step` itself where no row is missing. `block`: tokens of a page.
const StepInput& padded_step(const StepInput& step, std::int64_t rows, std::int64_t block, StepBuffer& into);

// A decode step, which has one row for each sequence, padded so that all its sizes depend only on `rows` and `blocks`:
// each missing row is a dummy sequence, each sequence has room for `blocks` pages, and `rows` rows have logits, those
// of the step first.
const StepInput& padded_decode_step(const StepInput& step, std::int64_t rows, std::int64_t blocks, StepBuffer& into);

inline bool is_decode_step(const StepInput& step) { return step.rows() == batch_of(step.batch).sequences; }

}  // namespace weft
