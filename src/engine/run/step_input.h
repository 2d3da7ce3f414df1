#pragma once

#include "engine/compile/phase.h"
#include "tensor/tensor.h"

namespace weft {

// One step: the rows of its sequences, one sequence after another.
struct StepInput {
  Tensor ids;                   // i64[rows]
  Tensor positions;             // i64[rows]
  Tensor slots;                 // i64[rows]: page * block + position in the page
  Tensor token_types;           // i64[rows], for models with a table of them: 1 in the second text of a pair, else 0
  Tensor adapters;              // i64[rows]: the choice of each row (engine/weights/lora_stacks.h)
  Tensor batch;                 // tensor/batch.h
  Tensor logit_rows;            // i64[n]: rows that need logits
  Phase phase = Phase::prompt;  // of all rows

  std::int64_t rows() const { return ids.meta.shape[0].number(); }
  std::int64_t logit_row_count() const { return logit_rows.meta.shape[0].number(); }
};

}  // namespace weft
