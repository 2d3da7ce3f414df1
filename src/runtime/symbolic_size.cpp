#include "runtime/symbolic_size.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/dim_terms.h"

namespace weft {
namespace {

// Rounds toward minus infinity, as DimAtom does.
std::int64_t floor_divide(std::int64_t a, std::int64_t divisor) {
  const std::int64_t quotient = a / divisor;
  return a % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace

SymbolicSize::SymbolicSize(const Dim& dim, std::span<const std::string> symbols) : constant_(dim.constant()) {
  for (const Dim::Term& term : dim.terms()) {
    Term& own = terms_.emplace_back(Term{term.coefficient, {}});
    for (const DimAtom& atom : term.factors) {
      if (atom.symbol.empty()) {
        own.factors.push_back({.inner = std::make_shared<SymbolicSize>(atom.inner, symbols), .divisor = atom.divisor});
        continue;
      }
      const auto found = std::find(symbols.begin(), symbols.end(), atom.symbol);
      CHECK(found != symbols.end(), "the size {} holds the symbol {}, which no input gives", dim.text(), atom.symbol);
      own.factors.push_back({.symbol = static_cast<std::uint32_t>(found - symbols.begin())});
    }
  }
}

std::int64_t SymbolicSize::value(std::span<const std::int64_t> values) const {
  std::int64_t sum = constant_;
  bool is_beyond = false;
  for (const Term& term : terms_) {
    std::int64_t product = term.coefficient;
    for (const Factor& factor : term.factors) {
      const std::int64_t number =
          factor.inner == nullptr ? values[factor.symbol] : floor_divide(factor.inner->value(values), factor.divisor);
      is_beyond |= __builtin_mul_overflow(product, number, &product);
    }
    is_beyond |= __builtin_add_overflow(sum, product, &sum);
  }
  CHECK(!is_beyond, "a size leaves 64 bits");
  return sum;
}

bool SymbolicSize::is_affine() const {
  return terms_.size() == 1 && terms_[0].factors.size() == 1 && terms_[0].factors[0].inner == nullptr;
}

SymbolicSize::Affine SymbolicSize::affine() const {
  CHECK(is_affine(), "a size is not a multiple of one symbol and a number");
  return {terms_[0].coefficient, constant_, terms_[0].factors[0].symbol};
}

}  // namespace weft
