#include "capture/range_boundary.h"

namespace weft {
namespace {

// Returns the number that is farthest from `near` toward `far` and up to which `is_proved` is true. It must be true at
// `near`.
template <class IsProved>
std::int64_t farthest(std::int64_t near, std::int64_t far, const IsProved& is_proved) {
  if (is_proved(far)) return far;
  while (near != far && near + (far > near ? 1 : -1) != far) {
    const std::int64_t middle = near + (far - near) / 2;
    (is_proved(middle) ? near : far) = middle;
  }
  return near;
}

}  // namespace

std::optional<RangeBoundary> range_boundary(const DimCondition& condition, const Bounds& bounds,
                                            const Bindings& sizes) {
  std::set<std::string> symbols;
  condition.left.collect_symbols(symbols);
  condition.right.collect_symbols(symbols);
  if (symbols.size() != 1) return std::nullopt;
  const std::string& symbol = *symbols.begin();
  const Interval all = bounds.at(symbol);
  const std::int64_t size = sizes.at(symbol);
  const auto is_proved = [&](std::int64_t lo, std::int64_t hi, Truth truth) {
    return lo > hi || condition.truth({{symbol, {lo, hi}}}) == truth;
  };
  if (!is_proved(size, size, Truth::yes)) return std::nullopt;
  const std::int64_t hi = farthest(size, all.hi, [&](std::int64_t end) { return is_proved(size, end, Truth::yes); });
  const std::int64_t lo = farthest(size, all.lo, [&](std::int64_t end) { return is_proved(end, hi, Truth::yes); });
  if (!is_proved(lo, hi, Truth::yes) || !is_proved(all.lo, lo - 1, Truth::no) || !is_proved(hi + 1, all.hi, Truth::no))
    return std::nullopt;
  return RangeBoundary{symbol, {lo, hi}};
}

std::vector<Bounds> other_sides(const Bounds& all, const Bounds& part) {
  std::vector<Bounds> sides;
  int differing = 0;
  for (const auto& [symbol, whole] : all) {
    const Interval inner = part.at(symbol);
    if (inner == whole) continue;
    ++differing;
    Bounds side = all;
    if (whole.lo < inner.lo) {
      side[symbol] = {whole.lo, inner.lo - 1};
      sides.push_back(side);
    }
    if (inner.hi < whole.hi) {
      side[symbol] = {inner.hi + 1, whole.hi};
      sides.push_back(side);
    }
  }
  return differing == 1 ? sides : std::vector<Bounds>();
}

}  // namespace weft
