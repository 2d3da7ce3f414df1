#pragma once

// Walks through a grammar: of the bytes that may follow, the input chooses.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "grammar/compiled_grammar.h"
#include "grammar/parser_states.h"

namespace weft {

// Ends the program where no byte may follow although the text must not end.
inline void walk_grammar(const grammar::Grammar& made, const std::uint8_t* data, std::size_t size) {
  const grammar::CompiledGrammar compiled(made);
  grammar::ParserStates states(compiled);
  grammar::StateId state = states.start();
  for (std::size_t i = 0; i < size && i < 64; ++i) {
    if (states.frames(state).empty()) break;
    grammar::StateId next = grammar::kDead;
    for (int offset = 0; next == grammar::kDead && offset < 256; ++offset)
      next = states.step(state, static_cast<std::uint8_t>(data[i] + offset));
    const bool is_deep = states.depth(state) > grammar::kDeepestStack / 2;  // deeper rules are not entered
    if (next == grammar::kDead && !states.may_end(state) && !is_deep) std::abort();
    if (next == grammar::kDead) break;
    state = next;
  }
}

}  // namespace weft
