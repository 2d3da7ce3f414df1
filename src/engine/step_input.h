#pragma once

#include "tensor/tensor.h"

namespace weft {

// One step over the rows of all its sequences, one after another.
struct StepInput {
  Tensor ids;         // i64[rows]
  Tensor positions;   // i64[rows]
  Tensor slots;       // i64[rows]: page * block + place
  Tensor batch;       // tensor/batch.h
  Tensor logit_rows;  // i64[n]: rows that want logits

  std::int64_t rows() const { return ids.meta.shape[0].number(); }
  std::int64_t logit_row_count() const { return logit_rows.meta.shape[0].number(); }
};

}  // namespace weft
