#pragma once

// A step with rows behind its own, up to the size that it was captured for. They are one more sequence: it has no pages
// to write, reads the first page of all, and nobody reads what becomes of it.

#include "engine/step_buffer.h"

namespace weft {

// The step with as many rows more as `rows` takes, written into `into`, which has room for a sequence more than the
// step has; the step itself where none is missing. `block`: tokens of a page.
const StepInput& padded_step(const StepInput& step, std::int64_t rows, std::int64_t block, StepBuffer& into);

// A step of one sequence of `rows` rows, which writes nothing: something to capture for.
const StepInput& empty_step(std::int64_t rows, std::int64_t block, StepBuffer& into);

}  // namespace weft
