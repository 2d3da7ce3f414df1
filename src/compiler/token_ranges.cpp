#include "compiler/token_ranges.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/error.h"

namespace weft {
namespace {

// Collects the last rows of ranges that the kernels for `op` need: a kernel for rows [a, b] ends ranges at a - 1 and at
// b.
void collect_boundaries(const std::string& op, const Context& context, std::set<std::int64_t>& boundaries) {
  for (const std::string& provider : context.priorities.list(op)) {
    const Kernel* kernel = context.kernels.find(op, provider);
    if (kernel == nullptr) continue;
    boundaries.insert(kernel->rows.lo - 1);
    boundaries.insert(kernel->rows.hi);
  }
}

}  // namespace

TokenRanges token_ranges(const Graph& traced, const Context& context, std::int64_t most_rows) {
  TokenRanges result;
  for (const std::string& size : context.options.compile_sizes) {
    std::int64_t rows = 0;
    std::from_chars(size.data(), size.data() + size.size(), rows);
    CHECK(rows > 0, "effective options hold the compile size {}", size);
    if (rows <= most_rows) result.ranges.push_back({rows, rows});
  }

  std::set<std::int64_t> ends;
  const auto add = [&](std::int64_t end) { return end >= 1 && end < most_rows && ends.insert(end).second; };
  for (std::int64_t point : context.options.compile_ranges_split_points) add(point);
  add(context.options.rope_kvcache_fusion_max_token_num);
  std::set<std::int64_t> wanted;
  for (const auto& node : traced.nodes()) collect_boundaries(node->name, context, wanted);
  for (std::int64_t end : wanted) {
    if (end < 1 || end >= most_rows || ends.count(end) != 0) continue;
    if (ends.size() + 2 > kMostDefaultRanges) {
      result.dropped.push_back(end);
    } else {
      add(end);
    }
  }

  std::int64_t begin = 1;
  ends.insert(most_rows);
  for (std::int64_t end : ends) {
    result.ranges.push_back({begin, end});
    begin = end + 1;
  }
  return result;
}

const TokenRange* range_around(std::span<const TokenRange> ranges, std::size_t index) {
  const TokenRange& size = ranges[index];
  if (size.lo != size.hi) return nullptr;
  const auto rest = ranges.subspan(index + 1);
  const auto around = std::find_if(rest.begin(), rest.end(),
                                   [&](const TokenRange& range) { return range.lo <= size.lo && size.hi <= range.hi; });
  return around == rest.end() ? nullptr : &*around;
}

std::size_t range_of(std::span<const TokenRange> ranges, std::int64_t rows) {
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (rows >= ranges[i].lo && rows <= ranges[i].hi) return i;
  CHECK(false, "no range was compiled for {} rows", rows);
  return 0;
}

RangeTable::RangeTable(std::vector<TokenRange> ranges) : ranges_(std::move(ranges)) {
  std::int64_t most = 0;
  for (const TokenRange& range : ranges_) most = std::max(most, range.hi);
  by_rows_.resize(static_cast<std::size_t>(most) + 1);
  for (std::size_t i = ranges_.size(); i-- > 0;)  // in reverse, so that the first range with a count wins
    for (std::int64_t rows = ranges_[i].lo; rows <= ranges_[i].hi; ++rows)
      by_rows_[static_cast<std::size_t>(rows)] = static_cast<std::uint32_t>(i + 1);
}

std::size_t RangeTable::of(std::int64_t rows) const {
  const bool is_held = rows >= 0 && rows < static_cast<std::int64_t>(by_rows_.size());
  const std::uint32_t number = is_held ? by_rows_[static_cast<std::size_t>(rows)] : 0;
  CHECK(number > 0, "no range was compiled for {} rows", rows);
  return number - 1;
}

}  // namespace weft
