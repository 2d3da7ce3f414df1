#pragma once

// What a compiled model will need and do, without its weights: the memory of weights, KV pages and activations, and the
// traffic and operations of its steps.

#include "compiler/step_work.h"
#include "engine/compile/model_compilation.h"

namespace weft {

struct PlannedMemory {
  std::int64_t weights = 0;       // as loaded: packed and merged
  std::int64_t kv_per_token = 0;  // pages of all layers
  // The part of it that recurrent layers have. A page has their states once, for `page_tokens` tokens.
  std::int64_t states_per_token = 0;
  std::int64_t page_tokens = 0;
  std::int64_t kv_cache = 0;     // pages of one sequence as long as the context
  std::int64_t activations = 0;  // arenas, for the largest step; 0 without Plans

  std::int64_t total() const { return weights + kv_cache + activations; }
};

PlannedMemory planned_memory(const ModelCompilation& model);

// A step of sequences of equal length, of rows of one phase, that computes the logits of the last row of each.
struct PlannedStep {
  std::int64_t rows = 0;    // of all sequences
  std::int64_t cached = 0;  // tokens of each in the KV pages before the step
  StepWork work;            // without activations where there are no Plans
};

// The step must fit into a step of the engine, and the sequences into the context. Each has rows / sequences of the
// rows.
PlannedStep planned_step(ModelCompilation& model, Phase phase, std::int64_t rows, std::int64_t cached,
                         std::int64_t sequences = 1);

}  // namespace weft
