#pragma once

// What a Dim is made of. One kind of function is enough, as in mathematics ceildiv(x, k) = floordiv(x + k - 1, k) and
// align(x, k) = k * ceildiv(x, k); so equal expressions have equal forms however they were written, and text() gives
// back the shortest of the three spellings.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dim.h"

namespace weft {

// Limits of one expression. They keep text from a file from growing exponentially when products are multiplied out;
// real shapes stay far below.
inline constexpr std::size_t kMaxDimTerms = 256;
inline constexpr std::size_t kMaxDimDegree = 16;
inline constexpr std::int64_t kMaxDimDepth = 32;
inline constexpr std::int64_t kMaxDimSize = 4096;

// A symbol, or floordiv(inner, divisor) with divisor >= 2, the constant of `inner` in [0, divisor), and no term of
// `inner` with a coefficient divisible by divisor.
struct DimAtom {
  std::string symbol;  // "" for a floordiv
  Dim inner;
  std::int64_t divisor = 1;
  std::int64_t depth = 0;  // floordivs around the innermost symbol
  std::int64_t size = 1;   // atoms inside, this one included
};

// Order of atoms: symbols by name, then floordivs.
int compare_atoms(const DimAtom& a, const DimAtom& b);

// coefficient * product of factors. Factors are sorted; a power repeats its atom.
struct Dim::Term {
  std::int64_t coefficient = 0;
  std::vector<DimAtom> factors;
};

// Order of terms: by factors, the longer first where one continues the other.
int compare_factors(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b);

// Whether Dim::symbol takes this name.
bool is_symbol_name(const std::string& name);

}  // namespace weft
