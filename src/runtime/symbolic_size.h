#pragma once

// A Dim whose symbols are replaced by indices, so that it is evaluated from an array of values without names and
// without allocation.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/dim.h"

namespace weft {

class SymbolicSize {
 public:
  // Symbol i is symbols[i]. InternalError for a symbol that is not among them.
  SymbolicSize(const Dim& dim, std::span<const std::string> symbols);

  // The value with values[i] for symbol i; InternalError when it does not fit in 64 bits.
  std::int64_t value(std::span<const std::int64_t> values) const;

  // Whether it is factor * values[symbol] + constant.
  bool is_affine() const;
  struct Affine {
    std::int64_t factor;
    std::int64_t constant;
    std::uint32_t symbol;
  };
  // InternalError when it is not.
  Affine affine() const;

 private:
  struct Factor {  // a symbol, or floor(inner / divisor)
    std::uint32_t symbol = 0;
    std::shared_ptr<const SymbolicSize> inner = {};
    std::int64_t divisor = 1;
  };
  struct Term {
    std::int64_t coefficient;
    std::vector<Factor> factors;
  };
  std::vector<Term> terms_;
  std::int64_t constant_;
};

}  // namespace weft
