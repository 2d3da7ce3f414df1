#pragma once

// Whether a fusion pays, without measurements: what it moves between memory and the processor beside what its parts do.
// The arithmetic is the same on both sides, since a fused op means its parts; where a kernel does it worse all the
// same, measurements say so (compiler/tune.h), and they go first.

#include <span>

#include "ir/pattern_rewrite.h"

namespace weft {

// Bytes read and written at this count of rows, each operand and result of each node once. Views move nothing; KV pages
// and batches are left out, as they go through both sides alike.
std::int64_t traffic_of(std::span<Node* const> nodes, std::int64_t rows);
std::int64_t traffic_of(std::span<const PlannedCall> calls, std::int64_t rows);

}  // namespace weft
