#pragma once

// Runs one step of the largest size, to measure what it needs.

#include "engine/run/model_runner.h"

namespace weft {

// Runs the prompt of one sequence: max_tokens() rows of token 0, with logits of the last max_logit_rows() rows.
// Allocates the KV pages for it; the content of earlier pages is lost.
void run_largest_step(ModelRunner& runner);

}  // namespace weft
