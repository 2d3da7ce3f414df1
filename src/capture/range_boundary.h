#pragma once

// Branches on sizes as boundaries of ranges.

#include <optional>
#include <string>
#include <vector>

#include "tensor/dim_condition.h"

namespace weft {

struct RangeBoundary {
  std::string symbol;
  Interval range;
};

// The range around `size` where `condition`, which holds there, is proved to hold, if it is proved to fail everywhere
// else within the bounds: then the range says all that the condition says. Nothing where it asks about several symbols,
// or where the answer changes to and fro.
std::optional<RangeBoundary> range_boundary(const DimCondition& condition, const Bounds& bounds, const Bindings& sizes);

// The parts of `all` that `part` leaves, where they differ in one symbol; nothing where they differ in several.
std::vector<Bounds> other_sides(const Bounds& all, const Bounds& part);

}  // namespace weft
