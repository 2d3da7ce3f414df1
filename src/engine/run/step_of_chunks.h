#pragma once

// From what a scheduler decided to the step of a model.

#include <span>
#include <vector>

#include "engine/run/step_buffer.h"
#include "engine/schedule/scheduler.h"

namespace weft {

// Appends the rows of the step whose logits the chunks want.
void add_logit_rows(std::span<const Chunk> chunks, std::vector<std::int64_t>& rows);

// Fills `step` with the next rows of each chunk's sequence, in pages of `block` tokens.
void fill_step(StepBuffer& step, std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows,
               std::int64_t block, Phase phase);

}  // namespace weft
