#pragma once

// The token ranges a graph is compiled for: exact sizes first, then ranges that cover [1, most_rows] between them. The
// first that holds a row count is the one that runs it.

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

struct TokenRanges {
  std::vector<TokenRange> ranges;
  // Points that kernels asked for, but that would have made more ranges than there may be by default. Their kernels
  // are refused for the range that holds such a point.
  std::vector<std::int64_t> dropped;
};

// Boundaries are the options compile_ranges_split_points, all of them, and rope_kvcache_fusion_max_token_num, and the
// bounds of the `rows` of kernels that the graph's ops may choose, from the lowest up, as long as there are at most
// kMostDefaultRanges ranges. Exact sizes are the option compile_sizes.
TokenRanges token_ranges(const Graph& traced, const Context& context, std::int64_t most_rows);

inline constexpr std::size_t kMostDefaultRanges = 3;

// The range that would run an exact size if it were not there; null where ranges[index] is none.
const TokenRange* range_around(std::span<const TokenRange> ranges, std::size_t index);

// The range that `rows` rows run in. InternalError when none holds them.
std::size_t range_of(std::span<const TokenRange> ranges, std::int64_t rows);

// Ranges, and the same by one look into a table.
class RangeTable {
 public:
  RangeTable() = default;
  explicit RangeTable(std::vector<TokenRange> ranges);
  std::size_t of(std::int64_t rows) const;
  const std::vector<TokenRange>& all() const { return ranges_; }

 private:
  std::vector<TokenRange> ranges_;
  std::vector<std::uint32_t> by_rows_;  // 0 for none, else one more than the range's number
};

}  // namespace weft
