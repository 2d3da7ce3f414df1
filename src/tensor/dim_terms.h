#pragma once

// The parts of a Dim. One kind of function is enough, because ceildiv(x, k) = floordiv(x + k - 1, k) and align(x, k) =
// k * ceildiv(x, k). So equal expressions have equal forms, however they were written, and text() prints the shortest
// of the three spellings.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dim.h"

namespace weft {

// Limits of one expression. Without them, text from a file could grow exponentially when products are multiplied out.
// Real shapes are far below the limits.
inline constexpr std::size_t kMaxDimTerms = 256;
inline constexpr std::size_t kMaxDimDegree = 16;
inline constexpr std::int64_t kMaxDimDepth = 32;
inline constexpr std::int64_t kMaxDimSize = 4096;

// A symbol, or floordiv(inner, divisor), where divisor >= 2, the constant of `inner` is in [0, divisor), and no
// coefficient of `inner` is divisible by divisor.
struct DimAtom {
  std::string symbol;  // "" for a floordiv
  Dim inner;
  std::int64_t divisor = 1;
  std::int64_t depth = 0;  // floordivs around the innermost symbol
  std::int64_t size = 1;   // atoms inside, including this one
};

// Order of atoms: symbols by name, then floordivs.
int compare_atoms(const DimAtom& a, const DimAtom& b);

// coefficient * product of factors. Factors are sorted; a power repeats its atom.
struct Dim::Term {
  std::int64_t coefficient = 0;
  std::vector<DimAtom> factors;
};

// The order of terms: by factors; if one list is a prefix of the other, the longer one is first.
int compare_factors(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b);

// Whether Dim::symbol accepts this name.
bool is_symbol_name(const std::string& name);

}  // namespace weft
