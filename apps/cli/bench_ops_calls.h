#pragma once

// The calls on which `bench ops` times an op.

#include <cstdint>
#include <vector>

#include "compiler/sample_call.h"

namespace weft {

// Those of the op's samples, and for the linear family the layers of a small model: once with each of these row counts
// where the rows can be others, else as they are. Attention sees one sequence, whose last tokens the rows are.
// Distinct ones, in the order of the samples.
std::vector<SampleCall> bench_calls(const Op& op, const OpTable& ops, const std::vector<std::int64_t>& row_counts);

}  // namespace weft
