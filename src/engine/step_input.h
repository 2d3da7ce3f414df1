#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// One step over the rows of all its sequences, one after another.
struct StepInput {
  std::span<const std::int64_t> ids;         // [rows]
  std::span<const std::int64_t> positions;   // [rows]
  std::span<const std::int64_t> slots;       // [rows]: page * block + place
  Tensor batch;                              // tensor/batch.h
  std::span<const std::int64_t> logit_rows;  // rows that want logits
};

}  // namespace weft
