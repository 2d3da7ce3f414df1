#pragma once

// One step of as many rows as a runner takes, to see what it needs.

#include "engine/model_runner.h"

namespace weft {

// Runs the prompt of one sequence, max_tokens() rows of token 0, with logits of its last max_logit_rows(). Makes the KV
// pages for it; what was in pages is gone.
void run_largest_step(ModelRunner& runner);

}  // namespace weft
