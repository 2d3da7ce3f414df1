#pragma once

// Turns branches on sizes into bounds of ranges.

#include <optional>
#include <string>
#include <vector>

#include "tensor/dim_condition.h"

namespace weft {

struct RangeBoundary {
  std::string symbol;
  Interval range;
};

// Returns the range around the symbol's size in `sizes` where `condition` is proved to hold, if it is also proved to
// fail everywhere else within the bounds: then the range replaces the condition. `condition` must hold for `sizes`.
// nullopt where it depends on several symbols, or where the sizes that satisfy it are not one range.
std::optional<RangeBoundary> range_boundary(const DimCondition& condition, const Bounds& bounds, const Bindings& sizes);

// The parts of `all` outside `part`, where they differ in one symbol; empty where they differ in several.
std::vector<Bounds> other_sides(const Bounds& all, const Bounds& part);

}  // namespace weft
