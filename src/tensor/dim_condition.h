#pragma once

// A comparison of two dims: what code asks that branches on a size. guard() in ir/reading.h answers it.
//
//   guard(x, x.dim(0) > 16)

#include "tensor/dim.h"

namespace weft {

struct DimCondition {
  enum class Relation : std::uint8_t { equal, not_equal, less, less_equal };

  Dim left;
  Relation relation = Relation::equal;
  Dim right;

  // yes: it holds for all values of the symbols within bounds; no: for none; unknown: neither can be shown.
  Truth truth(const Bounds& bounds) const;
  // Whether it holds for these values; UserError for a symbol without one.
  bool holds(const Bindings& bindings) const;
  // What holds exactly where this does not.
  DimCondition negated() const;
  std::string text() const;  // 16 < s0
  bool operator==(const DimCondition&) const = default;
};

DimCondition operator<(const Dim& a, const Dim& b);
DimCondition operator<=(const Dim& a, const Dim& b);
DimCondition operator>(const Dim& a, const Dim& b);
DimCondition operator>=(const Dim& a, const Dim& b);
// Not `==`: two Dims are `==` when they are the same expression, whatever the sizes are.
DimCondition equal(const Dim& a, const Dim& b);
DimCondition not_equal(const Dim& a, const Dim& b);

}  // namespace weft
