#pragma once

// The deterministic automaton of one rule. Its symbols are bytes and calls of rules: a byte leads to at most one state,
// and so does a call of a rule.

#include <vector>

#include "grammar/budget.h"
#include "grammar/grammar.h"

namespace weft::grammar {

struct ByteEdge {
  std::uint8_t first, last;
  int target;
};

struct CallEdge {
  int rule;
  int target;  // the state after the called rule
};

struct AutomatonState {
  bool accepts = false;
  bool counts = false;          // of Product::counted: the text up to here is one that is counted
  std::vector<ByteEdge> bytes;  // ascending, not overlapping
  std::vector<CallEdge> calls;  // by ascending rule
};

// The first state is the start.
using Automaton = std::vector<AutomatonState>;

// The automaton of a rule's body, with the bodies that it jumps to.
Automaton make_automaton(const Grammar& grammar, const Expression& body, Budget& budget);

// What both automata accept, or what `a` accepts and `b` does not, or what `a` accepts, where the states that texts of
// `b` lead to have `counts`. Neither has calls.
enum class Product { both, without, counted };
Automaton product_of(const Automaton& a, const Automaton& b, Product kind, Budget& budget);

}  // namespace weft::grammar
