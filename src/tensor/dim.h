#pragma once

// A dimension: a 64-bit number, or an expression over symbols such as `2*s0 + 16` or `align(s0, 4)`.
//
// A Dim is a value in one canonical form: a sum of products with sorted symbols and the constant last. Two Dims are
// equal (`==`) if their canonical forms are equal. compare_equal and compare_less_equal report whether a relation is
// true for all allowed values of the symbols; their answers are yes, no or unknown. Arithmetic that overflows 64 bits
// throws UserError, and so does an expression beyond the limits of dim_terms.h.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weft {

// The known bounds of each symbol: lo <= symbol <= hi. A symbol without bounds is in [0, 2^63).
struct Interval {
  std::int64_t lo = 0;
  std::int64_t hi = INT64_MAX;
  bool operator==(const Interval&) const = default;
};
using Bounds = std::map<std::string, Interval>;
using Bindings = std::map<std::string, std::int64_t>;

enum class Truth { no, yes, unknown };

class Dim {
 public:
  Dim(std::int64_t number = 0) : constant_(number) {}  // NOLINT: a number is a Dim
  // The name is a word of letters, digits and `_`, in a pattern with `?` first. It must not be a dtype or another word
  // that has a meaning in attributes. Throws UserError otherwise.
  static Dim symbol(std::string name);

  bool is_number() const { return terms_ == nullptr; }
  // The number. Throws InternalError if the Dim is symbolic.
  std::int64_t number() const;
  // The symbol's name if this is a single symbol, "" otherwise.
  std::string symbol_name() const;
  // The same if this is a single symbol times a positive number.
  std::string multiplied_symbol_name() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // The least multiple of k that is >= a; a / k rounded up; a / k rounded down. Throws UserError unless k >= 1.
  friend Dim align(const Dim& a, std::int64_t k);
  friend Dim ceildiv(const Dim& a, std::int64_t k);
  friend Dim floordiv(const Dim& a, std::int64_t k);  // toward minus infinity

  bool operator==(const Dim& other) const {
    return is_number() && other.is_number() ? constant_ == other.constant_ : compare(*this, other) == 0;
  }
  // A total order on canonical forms, for sorted containers only; it is not the order of the values.
  static int compare(const Dim& a, const Dim& b);

  // The value under these bindings. Throws UserError with the name of the first unbound symbol.
  std::int64_t evaluate(const Bindings& bindings) const;
  // The smallest interval that this analysis can prove. It saturates at the limits of 64 bits.
  Interval range(const Bounds& bounds) const;
  void collect_symbols(std::set<std::string>& into) const;
  // Returns a copy in which each symbol is replaced.
  Dim substitute(const std::map<std::string, Dim>& replacements) const;

  std::string text() const;

  // The canonical form: the sum of terms() and constant(). See dim_terms.h.
  struct Term;
  using Terms = std::vector<Term>;
  const Terms& terms() const;
  std::int64_t constant() const { return constant_; }
  // Sorts the terms, merges equal ones and drops those with coefficient 0.
  static Dim from_terms(Terms terms, std::int64_t constant);

 private:
  std::int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null for a number; never empty
};

Dim align(const Dim& a, std::int64_t k);
Dim ceildiv(const Dim& a, std::int64_t k);
Dim floordiv(const Dim& a, std::int64_t k);

// yes: true for all values of the symbols within the bounds. no: false for all. unknown: neither can be proved.
Truth compare_equal(const Dim& a, const Dim& b, const Bounds& bounds);
Truth compare_less_equal(const Dim& a, const Dim& b, const Bounds& bounds);

using Shape = std::vector<Dim>;

// Product of the dims; 1 for a scalar.
Dim element_count(const Shape& shape);
std::string shape_text(const Shape& shape);  // [s0, 576]

}  // namespace weft
