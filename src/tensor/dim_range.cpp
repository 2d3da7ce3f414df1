// What can be proved about a Dim whose symbols are within bounds. Plain intervals lose the relation between align(s0,
// 4) and s0; it is kept by the fact that k * floordiv(x, k) is in [x - (k - 1), x].

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "tensor/dim.h"
#include "tensor/dim_terms.h"

namespace weft {
namespace {

using Wide = __int128;

// A bound beyond this is no information about 64-bit numbers, and becomes infinite.
constexpr Wide kFar = Wide{1} << 100;
constexpr Wide kEndless = Wide{1} << 125;  // the sum of two still fits 128 bits

// How many levels of nested floordivs are replaced by their bounds.
constexpr int kRelaxationDepth = 2;

struct WideInterval {
  Wide lo = 0;
  Wide hi = 0;
};

// A bound may move outwards, never inwards.
WideInterval outward(Wide lo, Wide hi) {
  WideInterval interval;
  interval.lo = lo < -kFar ? -kEndless : std::min(lo, kFar);
  interval.hi = hi > kFar ? kEndless : std::max(hi, -kFar);
  return interval;
}

Wide product_of_bounds(Wide a, Wide b) {
  Wide product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return std::clamp(product, -kEndless, kEndless);
  return (a < 0) == (b < 0) ? kEndless : -kEndless;
}

WideInterval add(WideInterval a, WideInterval b) { return outward(a.lo + b.lo, a.hi + b.hi); }

WideInterval multiply(WideInterval a, WideInterval b) {
  const std::array corners = {product_of_bounds(a.lo, b.lo), product_of_bounds(a.lo, b.hi),
                              product_of_bounds(a.hi, b.lo), product_of_bounds(a.hi, b.hi)};
  const auto [lo, hi] = std::minmax_element(corners.begin(), corners.end());
  return outward(*lo, *hi);
}

Wide floor_divide_bound(Wide a, Wide k) {
  if (a <= -kEndless || a >= kEndless) return a;
  const Wide quotient = a / k;
  return a % k < 0 ? quotient - 1 : quotient;
}

WideInterval wide_range(const Dim& dim, const Bounds& bounds, int relaxations);

WideInterval atom_range(const DimAtom& atom, const Bounds& bounds, int relaxations) {
  if (atom.symbol.empty()) {
    const WideInterval inner = wide_range(atom.inner, bounds, relaxations);
    return {floor_divide_bound(inner.lo, atom.divisor), floor_divide_bound(inner.hi, atom.divisor)};
  }
  const auto found = bounds.find(atom.symbol);
  const Interval known = found == bounds.end() ? Interval{} : found->second;
  return {known.lo, known.hi};
}

// Product of all factors except `skip`, which may be past the end.
WideInterval product_range(const std::vector<DimAtom>& factors, std::size_t skip, const Bounds& bounds,
                           int relaxations) {
  WideInterval product{1, 1};
  for (std::size_t i = 0; i < factors.size();) {
    if (i == skip) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < factors.size() && end != skip && compare_atoms(factors[i], factors[end]) == 0) ++end;
    const WideInterval base = atom_range(factors[i], bounds, relaxations);
    WideInterval power{1, 1};
    for (std::size_t n = i; n < end; ++n) power = multiply(power, base);
    if ((end - i) % 2 == 0) power.lo = std::max<Wide>(power.lo, 0);
    product = multiply(product, power);
    i = end;
  }
  return product;
}

// Computes a Dim without the outermost floordivs that is >= scale * dim if `upper`, else <= scale * dim. Terms whose
// floordiv multiplies a factor of unknown sign are kept. Returns false if there is nothing to replace.
bool relax(const Dim& dim, bool upper, const Bounds& bounds, int relaxations, Dim& relaxed, std::int64_t& scale) {
  scale = 1;
  std::vector<std::size_t> chosen;  // by term: the index of the factor to replace, or the number of factors for none
  for (const Dim::Term& term : dim.terms()) {
    std::size_t place = 0;
    while (place < term.factors.size() && !term.factors[place].symbol.empty()) ++place;
    if (place < term.factors.size() && product_range(term.factors, place, bounds, relaxations).lo < 0)
      place = term.factors.size();
    chosen.push_back(place);
    if (place == term.factors.size()) continue;
    const std::int64_t divisor = term.factors[place].divisor;
    const std::int64_t missing = divisor / std::gcd(divisor, term.coefficient % divisor);
    if (__builtin_mul_overflow(scale, missing / std::gcd(scale, missing), &scale)) return false;
  }
  bool found = false;
  relaxed = Dim(dim.constant()) * scale;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Dim::Term& term = dim.terms()[i];
    Dim::Term rest{term.coefficient, term.factors};
    if (chosen[i] == term.factors.size()) {
      relaxed = relaxed + Dim::from_terms({rest}, 0) * scale;
      continue;
    }
    found = true;
    const DimAtom& atom = term.factors[chosen[i]];
    rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(chosen[i]));
    rest.coefficient = 1;
    const Dim others = rest.factors.empty() ? Dim(1) : Dim::from_terms({rest}, 0);
    const bool from_above = (term.coefficient > 0) == upper;
    const Dim bound = from_above ? atom.inner : atom.inner - Dim(atom.divisor - 1);
    const Wide factor = Wide{term.coefficient} * scale / atom.divisor;
    if (factor < INT64_MIN || factor > INT64_MAX) return false;
    relaxed = relaxed + Dim(static_cast<std::int64_t>(factor)) * bound * others;
  }
  return found;
}

WideInterval wide_range(const Dim& dim, const Bounds& bounds, int relaxations) {
  WideInterval sum{dim.constant(), dim.constant()};
  bool has_function = false;
  for (const Dim::Term& term : dim.terms()) {
    const WideInterval product = product_range(term.factors, term.factors.size(), bounds, relaxations);
    sum = add(sum, multiply({term.coefficient, term.coefficient}, product));
    has_function = has_function || term.factors.back().symbol.empty();
  }
  if (!has_function || relaxations == 0) return sum;
  for (const bool upper : {false, true}) {
    Dim relaxed;
    std::int64_t scale = 1;
    try {
      if (!relax(dim, upper, bounds, relaxations - 1, relaxed, scale)) continue;
    } catch (const UserError&) {
      continue;  // the bound does not fit 64 bits and gives no information
    }
    const WideInterval range = wide_range(relaxed, bounds, relaxations - 1);
    if (upper) {
      sum.hi = std::min(sum.hi, floor_divide_bound(range.hi, scale));
    } else {
      sum.lo = std::max(sum.lo, -floor_divide_bound(-range.lo, scale));
    }
  }
  return sum;
}

// Whether the sum is never zero because all coefficients have a common divisor that does not divide the constant.
bool never_zero_by_divisor(const Dim& dim) {
  std::int64_t divisor = 0;
  for (const Dim::Term& term : dim.terms()) {
    if (term.coefficient == INT64_MIN) return false;
    divisor = std::gcd(divisor, term.coefficient);
  }
  return divisor != 0 && dim.constant() % divisor != 0;
}

// Computes a - b. Returns false if it overflows 64 bits or the limits of an expression.
bool difference(const Dim& a, const Dim& b, Dim& result) {
  try {
    result = a - b;
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

Interval Dim::range(const Bounds& bounds) const {
  const WideInterval wide = wide_range(*this, bounds, kRelaxationDepth);
  const auto narrow = [](Wide value) {
    return static_cast<std::int64_t>(std::clamp<Wide>(value, INT64_MIN, INT64_MAX));
  };
  return {narrow(wide.lo), narrow(wide.hi)};
}

Truth compare_equal(const Dim& a, const Dim& b, const Bounds& bounds) {
  Dim gap;
  if (!difference(a, b, gap)) return Truth::unknown;
  const WideInterval range = wide_range(gap, bounds, kRelaxationDepth);
  if (range.lo == 0 && range.hi == 0) return Truth::yes;
  if (range.lo > 0 || range.hi < 0 || never_zero_by_divisor(gap)) return Truth::no;
  return Truth::unknown;
}

Truth compare_less_equal(const Dim& a, const Dim& b, const Bounds& bounds) {
  Dim gap;
  if (!difference(b, a, gap)) return Truth::unknown;
  const WideInterval range = wide_range(gap, bounds, kRelaxationDepth);
  if (range.lo >= 0) return Truth::yes;
  if (range.hi < 0) return Truth::no;
  return Truth::unknown;
}

}  // namespace weft
