// The text of a Dim: terms in canonical order, then the constant. A division is written as floordiv, ceildiv or align,
// whichever needs no constant inside.

#include <string>

#include "tensor/dim.h"
#include "tensor/dim_terms.h"

namespace weft {
namespace {

bool rounds_up(const DimAtom& atom) { return atom.symbol.empty() && atom.inner.constant() == atom.divisor - 1; }

std::string atom_text(const DimAtom& atom, bool as_align) {
  if (!atom.symbol.empty()) return atom.symbol;
  const bool up = rounds_up(atom);
  std::string text = as_align ? "align(" : up ? "ceildiv(" : "floordiv(";
  text += (up ? Dim::from_terms(atom.inner.terms(), 0) : atom.inner).text();
  return text + ", " + std::to_string(atom.divisor) + ")";
}

// `coefficient` is the term's coefficient, or its magnitude if the sign has been written already.
std::string term_text(std::int64_t coefficient, const std::vector<DimAtom>& factors) {
  std::string product;
  for (const DimAtom& atom : factors) {
    const bool as_align = rounds_up(atom) && coefficient % atom.divisor == 0;
    if (as_align) coefficient /= atom.divisor;
    product += (product.empty() ? "" : "*") + atom_text(atom, as_align);
  }
  return coefficient == 1 ? product : std::to_string(coefficient) + "*" + product;
}

}  // namespace

std::string Dim::text() const {
  if (is_number()) return std::to_string(constant_);
  std::string text;
  // INT64_MIN has no magnitude in 64 bits, so it keeps its sign.
  const auto subtracts = [&](std::int64_t number) { return number < 0 && number != INT64_MIN && !text.empty(); };
  for (const Term& term : terms()) {
    const bool minus = subtracts(term.coefficient);
    const std::string spelled = term_text(minus ? -term.coefficient : term.coefficient, term.factors);
    text += (text.empty() ? "" : minus ? " - " : " + ") + spelled;
  }
  if (constant_ != 0) {
    const bool minus = subtracts(constant_);
    text += (minus ? " - " : " + ") + std::to_string(minus ? -constant_ : constant_);
  }
  return text;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + shape[i].text();
  return text + "]";
}

}  // namespace weft
