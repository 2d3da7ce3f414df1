#pragma once

// A step with rows behind its own, up to the size that it was captured for. They are one more sequence: it has no pages
// to write, reads the first page of all, and nobody reads what becomes of it.

#include "engine/step_input.h"

namespace weft {

class PaddedStep {
 public:
  // The step itself where it has `rows` rows already. `block`: tokens of a page.
  PaddedStep(const StepInput& step, std::int64_t rows, std::int64_t block);
  PaddedStep(const PaddedStep&) = delete;
  PaddedStep& operator=(const PaddedStep&) = delete;

  const StepInput& input() const { return input_; }

 private:
  std::vector<std::int64_t> ids_, positions_, slots_;
  StepInput input_;
};

// A step of one sequence of `rows` rows, which writes nothing: something to capture for.
PaddedStep empty_step(std::int64_t rows, std::int64_t block);

}  // namespace weft
