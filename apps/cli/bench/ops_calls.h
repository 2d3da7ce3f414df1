#pragma once

// This file makes the calls on which `bench ops` and `bench functions` time an op.

#include <cstdint>
#include <vector>

#include "compiler/run/sample_call.h"

namespace weft {

// Returns the calls of the op's samples, and for the linear family also the layers of a small model. Each call is made
// once for each of these row counts if its rows can change, else once as it is. Attention has one sequence, whose last
// tokens are the rows. The calls are distinct and in the order of the samples.
std::vector<SampleCall> bench_calls(const Op& op, const OpTable& ops, const std::vector<std::int64_t>& row_counts);

// Returns the op's first sample with other numbers of rows and columns, and with groups of `group` unless that is 0.
// Values are rounded between its parts, as in fusions. The columns are those of the op's first result. For an op that
// computes by heads, the query has that many columns in heads of 64, and all elements of a head are rotated. Its key
// and value have the largest number of heads that divides the query's heads and is at most half of them, and the KV
// pages hold 16 tokens in f16. Throws UserError if an op has no columns, or if the columns are not whole heads.
Sample resized(const Op& op, const OpTable& ops, std::int64_t rows, std::int64_t columns, std::int64_t group);

}  // namespace weft
