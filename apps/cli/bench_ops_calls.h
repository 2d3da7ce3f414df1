#pragma once

// The calls on which `bench ops` and `bench functions` time an op.

#include <cstdint>
#include <vector>

#include "compiler/sample_call.h"

namespace weft {

// Those of the op's samples, and for the linear family the layers of a small model: once with each of these row counts
// where the rows can be others, else as they are. Attention sees one sequence, whose last tokens the rows are.
// Distinct ones, in the order of the samples.
std::vector<SampleCall> bench_calls(const Op& op, const OpTable& ops, const std::vector<std::int64_t>& row_counts);

// The op's first sample with rows and columns of another count, and groups of `group` unless that is 0; rounded between
// its parts, as fusions are. Columns are those of the op's first result. What computes by heads has heads of 64 in as
// many columns of its query, all of which are rotated, for key and value as many as divide those, at most half, and
// pages of 16 tokens in f16. UserError where an op has no columns, or where they are not whole heads.
Sample resized(const Op& op, const OpTable& ops, std::int64_t rows, std::int64_t columns, std::int64_t group);

}  // namespace weft
