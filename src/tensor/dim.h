#pragma once

// A dimension: a 64-bit number or an expression over symbols such as `2*s0 + 16` or `align(s0, 4)`.
//
// Held by value and always in one canonical form: a sum of products, symbols sorted, constant last. Two Dims are equal
// (`==`) when their canonical forms are; whether they are equal for all allowed values of the symbols is a question
// with three answers: compare_equal, compare_less_equal. Arithmetic that leaves 64 bits throws UserError, and so does
// an expression beyond the limits of dim_terms.h.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weft {

// What is known of each symbol: lo <= symbol <= hi. A symbol that is absent lies in [0, 2^63).
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
  // A word of letters, digits and `_`, with `?` before it inside a pattern; not a dtype or another word that attributes
  // give a meaning to. UserError on anything else.
  static Dim symbol(std::string name);

  bool is_number() const { return terms_ == nullptr; }
  // The number; InternalError when symbolic.
  std::int64_t number() const;
  // The symbol's name when this is one symbol and nothing else, "" otherwise.
  std::string symbol_name() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // The least multiple of k that is >= a; a / k rounded up; a / k rounded down. k >= 1, else UserError.
  friend Dim align(const Dim& a, std::int64_t k);
  friend Dim ceildiv(const Dim& a, std::int64_t k);
  friend Dim floordiv(const Dim& a, std::int64_t k);  // toward minus infinity

  bool operator==(const Dim& other) const {
    return is_number() && other.is_number() ? constant_ == other.constant_ : compare(*this, other) == 0;
  }
  // A total order on canonical forms, for sorted containers only; it says nothing about magnitude.
  static int compare(const Dim& a, const Dim& b);

  // The value under bindings; UserError naming the first unbound symbol.
  std::int64_t evaluate(const Bindings& bindings) const;
  // The smallest interval this analysis can show; saturates at the ends of 64 bits.
  Interval range(const Bounds& bounds) const;
  void collect_symbols(std::set<std::string>& into) const;
  // The Dim with each symbol replaced.
  Dim substitute(const std::map<std::string, Dim>& replacements) const;

  std::string text() const;

  // The canonical form: the sum of terms() and constant(). See dim_terms.h.
  struct Term;
  using Terms = std::vector<Term>;
  const Terms& terms() const;
  std::int64_t constant() const { return constant_; }
  // Sorts, merges equal terms, drops those with coefficient 0.
  static Dim from_terms(Terms terms, std::int64_t constant);

 private:
  std::int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null for a number; never empty
};

Dim align(const Dim& a, std::int64_t k);
Dim ceildiv(const Dim& a, std::int64_t k);
Dim floordiv(const Dim& a, std::int64_t k);

// yes: for all values of the symbols within bounds; no: for none; unknown: neither can be shown.
Truth compare_equal(const Dim& a, const Dim& b, const Bounds& bounds);
Truth compare_less_equal(const Dim& a, const Dim& b, const Bounds& bounds);

using Shape = std::vector<Dim>;

// Product of the dims; 1 for a scalar.
Dim element_count(const Shape& shape);
std::string shape_text(const Shape& shape);  // [s0, 576]

}  // namespace weft
