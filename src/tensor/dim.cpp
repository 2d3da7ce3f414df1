#include "tensor/dim.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "tensor/dim_terms.h"
#include "tensor/dtype.h"

namespace weft {
namespace {

// Sums and products are computed in 128 bits, so that only the result has to fit 64 bits.
using Wide = __int128;

[[noreturn]] void fail_range() {
  fail_user("[dim] a dimension must fit 64 bits, but the arithmetic on it leaves them");
}

std::int64_t narrow(Wide value) {
  if (value < INT64_MIN || value > INT64_MAX) fail_range();
  return static_cast<std::int64_t>(value);
}

Wide floor_divide(Wide a, Wide k) {
  Wide quotient = a / k;
  return a % k < 0 ? quotient - 1 : quotient;
}

std::int64_t size_of(const Dim::Terms& terms) {
  std::int64_t size = 0;
  for (const Dim::Term& term : terms) {
    ++size;
    for (const DimAtom& atom : term.factors) size += atom.size;
  }
  return size;
}

std::int64_t depth_of(const Dim::Terms& terms) {
  std::int64_t depth = 0;
  for (const Dim::Term& term : terms)
    for (const DimAtom& atom : term.factors) depth = std::max(depth, atom.depth);
  return depth;
}

Dim scaled(const Dim& a, std::int64_t scale) {
  if (scale == 1) return a;
  if (scale == 0) return Dim(0);
  Dim::Terms terms = a.terms();
  for (Dim::Term& term : terms) term.coefficient = narrow(Wide{term.coefficient} * scale);
  return Dim::from_terms(std::move(terms), narrow(Wide{a.constant()} * scale));
}

// a + sign * b
Dim combined(const Dim& a, const Dim& b, int sign) {
  const std::int64_t constant = narrow(Wide{a.constant()} + Wide{sign} * b.constant());
  if (a.is_number() && b.is_number()) return Dim(constant);
  Dim::Terms terms = a.terms();
  for (const Dim::Term& term : b.terms()) terms.push_back({narrow(Wide{sign} * term.coefficient), term.factors});
  return Dim::from_terms(std::move(terms), constant);
}

// floor((a + bias) / k) for 0 <= bias < k. Terms that are divisible by k move out of the function, the greatest common
// divisor of the rest cancels, and a floordiv of a floordiv becomes one. Each step is an identity of integers, also for
// negative ones.
Dim quotient(const Dim& a, std::int64_t k, std::int64_t bias) {
  if (k == 1) return a;
  const Wide quotient_of_constant = floor_divide(Wide{a.constant()} + bias, k);
  auto rest_of_constant = static_cast<std::int64_t>(Wide{a.constant()} + bias - quotient_of_constant * k);
  const std::int64_t outer_constant = narrow(quotient_of_constant);
  Dim::Terms outer;
  Dim::Terms inner;
  std::int64_t divisor = k;
  for (const Dim::Term& term : a.terms()) {
    if (term.coefficient % k == 0) {
      outer.push_back({term.coefficient / k, term.factors});
    } else {
      inner.push_back(term);
      // This avoids |coefficient|, which does not exist for INT64_MIN.
      divisor = std::gcd(divisor, term.coefficient % k);
    }
  }
  if (inner.empty()) return Dim::from_terms(std::move(outer), outer_constant);
  for (Dim::Term& term : inner) term.coefficient /= divisor;
  rest_of_constant /= divisor;
  k /= divisor;

  if (inner.size() == 1 && inner[0].coefficient == 1 && inner[0].factors.size() == 1 &&
      inner[0].factors[0].symbol.empty()) {
    const DimAtom& atom = inner[0].factors[0];
    std::int64_t product = 0;
    std::int64_t shift = 0;
    std::int64_t constant = 0;
    if (!__builtin_mul_overflow(atom.divisor, k, &product) &&
        !__builtin_mul_overflow(atom.divisor, rest_of_constant, &shift) &&
        !__builtin_add_overflow(atom.inner.constant(), shift, &constant)) {
      Dim merged = quotient(Dim::from_terms(atom.inner.terms(), constant), product, 0);
      return combined(merged, Dim::from_terms(std::move(outer), outer_constant), 1);
    }
  }
  DimAtom atom;
  atom.inner = Dim::from_terms(std::move(inner), rest_of_constant);
  atom.divisor = k;
  atom.depth = 1 + depth_of(atom.inner.terms());
  atom.size = 1 + size_of(atom.inner.terms());
  USER_CHECK(atom.depth <= kMaxDimDepth, "[dim] functions may be nested {} deep, but are {}", kMaxDimDepth, atom.depth);
  outer.push_back({1, {std::move(atom)}});
  return Dim::from_terms(std::move(outer), outer_constant);
}

void check_divisor(const char* function, std::int64_t k) {
  USER_CHECK(k >= 1, "[dim] {} wants a number of at least 1, but is given {}", function, k);
}

Wide evaluate_wide(const Dim& dim, const Bindings& bindings);

Wide evaluate_atom(const DimAtom& atom, const Bindings& bindings) {
  if (atom.symbol.empty()) return floor_divide(evaluate_wide(atom.inner, bindings), atom.divisor);
  const auto found = bindings.find(atom.symbol);
  USER_CHECK(found != bindings.end(), "[dim] the symbol {} has no value", atom.symbol);
  return found->second;
}

Wide evaluate_wide(const Dim& dim, const Bindings& bindings) {
  Wide sum = dim.constant();
  for (const Dim::Term& term : dim.terms()) {
    Wide product = term.coefficient;
    for (const DimAtom& atom : term.factors)
      if (__builtin_mul_overflow(product, evaluate_atom(atom, bindings), &product)) fail_range();
    if (__builtin_add_overflow(sum, product, &sum)) fail_range();
  }
  return sum;
}

}  // namespace

bool is_symbol_name(const std::string& name) {
  static constexpr std::array kReserved = {"align", "ceildiv", "floordiv", "true", "false", "none", "inf", "nan"};
  const std::size_t start = !name.empty() && name[0] == '?' ? 1 : 0;
  if (name.size() == start || (name[start] >= '0' && name[start] <= '9')) return false;
  for (std::size_t i = start; i < name.size(); ++i) {
    const char c = name[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) return false;
  return !dtype_from_text(name).has_value();
}

int compare_atoms(const DimAtom& a, const DimAtom& b) {
  if (a.symbol.empty() != b.symbol.empty()) return a.symbol.empty() ? 1 : -1;
  if (!a.symbol.empty()) {
    const int order = a.symbol.compare(b.symbol);
    return (order > 0) - (order < 0);
  }
  if (const int order = Dim::compare(a.inner, b.inner)) return order;
  return (a.divisor > b.divisor) - (a.divisor < b.divisor);
}

int compare_factors(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  const std::size_t shared = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < shared; ++i)
    if (const int order = compare_atoms(a[i], b[i])) return order;
  return (a.size() < b.size()) - (a.size() > b.size());
}

const Dim::Terms& Dim::terms() const {
  static const Terms kNone;
  return terms_ ? *terms_ : kNone;
}

Dim Dim::from_terms(Terms terms, std::int64_t constant) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return compare_factors(a.factors, b.factors) < 0; });
  Terms merged;
  for (Term& term : terms) {
    if (term.coefficient == 0) continue;
    if (merged.empty() || compare_factors(merged.back().factors, term.factors) != 0) {
      merged.push_back(std::move(term));
      continue;
    }
    merged.back().coefficient = narrow(Wide{merged.back().coefficient} + term.coefficient);
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  Dim result(constant);
  if (merged.empty()) return result;
  USER_CHECK(merged.size() <= kMaxDimTerms, "[dim] an expression may have {} terms, but has {}", kMaxDimTerms,
             merged.size());
  for (const Term& term : merged)
    USER_CHECK(term.factors.size() <= kMaxDimDegree, "[dim] a product may have {} factors, but has {}", kMaxDimDegree,
               term.factors.size());
  USER_CHECK(size_of(merged) <= kMaxDimSize, "[dim] an expression may have {} symbols and functions, but has {}",
             kMaxDimSize, size_of(merged));
  result.terms_ = std::make_shared<const Terms>(std::move(merged));
  return result;
}

Dim Dim::symbol(std::string name) {
  USER_CHECK(is_symbol_name(name),
             "[dim] a symbol must be a word of letters, digits and _ without another meaning, but is '{}'", name);
  DimAtom atom;
  atom.symbol = std::move(name);
  Terms terms;
  terms.push_back({1, {std::move(atom)}});
  return from_terms(std::move(terms), 0);
}

std::int64_t Dim::number() const {
  CHECK(is_number(), "[dim] wanted a number, but is {}", text());
  return constant_;
}

std::string Dim::symbol_name() const {
  if (!terms_ || constant_ != 0 || terms_->size() != 1) return "";
  const Term& term = terms_->front();
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors[0].symbol : "";
}

std::string Dim::multiplied_symbol_name() const {
  if (!terms_ || constant_ != 0 || terms_->size() != 1) return "";
  const Term& term = terms_->front();
  return term.coefficient >= 1 && term.factors.size() == 1 ? term.factors[0].symbol : "";
}

Dim operator+(const Dim& a, const Dim& b) { return combined(a, b, 1); }
Dim operator-(const Dim& a, const Dim& b) { return combined(a, b, -1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_number()) return scaled(b, a.constant_);
  if (b.is_number()) return scaled(a, b.constant_);
  Dim::Terms products;
  const auto add_product = [&](std::int64_t coefficient, const std::vector<DimAtom>& x, const std::vector<DimAtom>& y) {
    Dim::Term term{coefficient, {}};
    term.factors.reserve(x.size() + y.size());
    std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(term.factors),
               [](const DimAtom& p, const DimAtom& q) { return compare_atoms(p, q) < 0; });
    products.push_back(std::move(term));
  };
  for (const Dim::Term& x : a.terms()) {
    for (const Dim::Term& y : b.terms()) add_product(narrow(Wide{x.coefficient} * y.coefficient), x.factors, y.factors);
    add_product(narrow(Wide{x.coefficient} * b.constant_), x.factors, {});
  }
  for (const Dim::Term& y : b.terms()) add_product(narrow(Wide{y.coefficient} * a.constant_), {}, y.factors);
  return Dim::from_terms(std::move(products), narrow(Wide{a.constant_} * b.constant_));
}

Dim align(const Dim& a, std::int64_t k) {
  check_divisor("align", k);
  return scaled(quotient(a, k, k - 1), k);
}

Dim ceildiv(const Dim& a, std::int64_t k) {
  check_divisor("ceildiv", k);
  return quotient(a, k, k - 1);
}

Dim floordiv(const Dim& a, std::int64_t k) {
  check_divisor("floordiv", k);
  return quotient(a, k, 0);
}

int Dim::compare(const Dim& a, const Dim& b) {
  if (a.terms_ != b.terms_) {
    const Terms& x = a.terms();
    const Terms& y = b.terms();
    const std::size_t shared = std::min(x.size(), y.size());
    for (std::size_t i = 0; i < shared; ++i) {
      if (const int order = compare_factors(x[i].factors, y[i].factors)) return order;
      if (x[i].coefficient != y[i].coefficient) return x[i].coefficient < y[i].coefficient ? -1 : 1;
    }
    if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  }
  return (a.constant_ > b.constant_) - (a.constant_ < b.constant_);
}

std::int64_t Dim::evaluate(const Bindings& bindings) const { return narrow(evaluate_wide(*this, bindings)); }

void Dim::collect_symbols(std::set<std::string>& into) const {
  for (const Term& term : terms())
    for (const DimAtom& atom : term.factors) {
      if (atom.symbol.empty()) {
        atom.inner.collect_symbols(into);
      } else {
        into.insert(atom.symbol);
      }
    }
}

Dim Dim::substitute(const std::map<std::string, Dim>& replacements) const {
  if (is_number()) return *this;
  Dim sum(constant_);
  for (const Term& term : terms()) {
    Dim product(term.coefficient);
    for (const DimAtom& atom : term.factors) {
      if (atom.symbol.empty()) {
        product = product * floordiv(atom.inner.substitute(replacements), atom.divisor);
        continue;
      }
      const auto found = replacements.find(atom.symbol);
      product = product * (found == replacements.end() ? symbol(atom.symbol) : found->second);
    }
    sum = sum + product;
  }
  return sum;
}

Dim element_count(const Shape& shape) {
  Dim count(1);
  for (const Dim& dim : shape) count = count * dim;
  return count;
}

}  // namespace weft
