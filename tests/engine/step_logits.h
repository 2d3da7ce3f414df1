#pragma once

// One step of several sequences, without an Engine around it.

#include <vector>

#include "engine/run/model_runner.h"

namespace weft {

// The first `count` tokens of some_ids(count, seed), on a page of their own.
struct SequenceOfStep {
  int count;
  std::int64_t adapter = 0;
  int seed = 3;
};

// The logits of all rows of a step, in its order.
std::vector<std::vector<float>> logits_of_step(ModelRunner& runner, const std::vector<SequenceOfStep>& sequences);

}  // namespace weft
