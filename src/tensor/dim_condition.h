#pragma once

// A comparison of two dims, for code that branches on a size. guard() in ir/reading.h evaluates it.
//
//   guard(x, x.dim(0) > 16)

#include "tensor/dim.h"

namespace weft {

struct DimCondition {
  enum class Relation : std::uint8_t { equal, not_equal, less, less_equal };

  Dim left;
  Relation relation = Relation::equal;
  Dim right;

  // yes: true for all values of the symbols within the bounds. no: false for all. unknown: neither can be proved.
  Truth truth(const Bounds& bounds) const;
  // Whether it is true for these values. Throws UserError for a symbol without a value.
  bool holds(const Bindings& bindings) const;
  // The condition that is true if and only if this one is false.
  DimCondition negated() const;
  std::string text() const;  // 16 < s0
  bool operator==(const DimCondition&) const = default;
};

DimCondition operator<(const Dim& a, const Dim& b);
DimCondition operator<=(const Dim& a, const Dim& b);
DimCondition operator>(const Dim& a, const Dim& b);
DimCondition operator>=(const Dim& a, const Dim& b);
// These are not `==`: two Dims are `==` if they are the same expression, whatever their values are.
DimCondition equal(const Dim& a, const Dim& b);
DimCondition not_equal(const Dim& a, const Dim& b);

}  // namespace weft
