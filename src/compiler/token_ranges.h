#pragma once

// The token ranges that a graph is compiled for: exact sizes first, then ranges that together cover [1, most_rows]. A
// row count runs in the first range that contains it.

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

struct TokenRanges {
  std::vector<TokenRange> ranges;
  // Boundaries that kernels asked for, but that would exceed the default number of ranges. Their kernels are refused
  // for the range that contains such a boundary.
  std::vector<std::int64_t> dropped;
};

// The boundaries are all values of the options compile_ranges_split_points and rope_kvcache_fusion_max_token_num. The
// bounds of the `rows` of kernels that the graph's ops may choose are added, lowest first, while there are at most
// kMostDefaultRanges ranges. Exact sizes are the option compile_sizes.
TokenRanges token_ranges(const Graph& traced, const Context& context, std::int64_t most_rows);

inline constexpr std::size_t kMostDefaultRanges = 3;

// The range that would run the exact size ranges[index] if that were absent; null where ranges[index] is not an exact
// size.
const TokenRange* range_around(std::span<const TokenRange> ranges, std::size_t index);

// The index of the range that `rows` rows run in. InternalError when no range contains them.
std::size_t range_of(std::span<const TokenRange> ranges, std::int64_t rows);

// Ranges, with range_of as one table look-up.
class RangeTable {
 public:
  RangeTable() = default;
  explicit RangeTable(std::vector<TokenRange> ranges);
  std::size_t of(std::int64_t rows) const;
  const std::vector<TokenRange>& all() const { return ranges_; }

 private:
  std::vector<TokenRange> ranges_;
  std::vector<std::uint32_t> by_rows_;  // 0 for none, else the range's index plus 1
};

}  // namespace weft
