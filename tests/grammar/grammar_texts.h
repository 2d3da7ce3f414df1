#pragma once

// Texts and grammars: whether one matches, and texts drawn by masks.

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/parser_states.h"
#include "grammar/token_masks.h"

namespace weft {

// The state after the text.
inline grammar::StateId state_after(grammar::ParserStates& states, grammar::StateId state, std::string_view text) {
  for (const char byte : text) state = states.step(state, static_cast<std::uint8_t>(byte));
  return state;
}
inline grammar::StateId state_after(grammar::ParserStates& states, std::string_view text) {
  return state_after(states, states.start(), text);
}

inline bool matches(const grammar::Grammar& grammar, std::string_view text) {
  const grammar::CompiledGrammar compiled(grammar);
  grammar::ParserStates states(compiled);
  return states.may_end(state_after(states, text));
}

// A grammar of one rule.
inline grammar::Grammar grammar_of(grammar::Expression body) {
  grammar::Grammar grammar;
  grammar.root = grammar.add("root", std::move(body));
  return grammar;
}

// All single bytes, and texts that cross the borders of JSON's tokens and of characters.
std::vector<std::string> small_vocabulary();

// Draws tokens that the masks allow until the text may end, and then ends it with some probability. Checks each mask
// against one that is walked. "" with a failure where no token is left or the text gets too long.
class TextWriter {
 public:
  TextWriter(const grammar::Grammar& grammar, const std::vector<std::string>& texts);
  std::string write(std::mt19937& random);

 private:
  std::uint32_t depth_after(grammar::StateId state, int token);

  std::vector<std::string> texts_;
  grammar::CompiledGrammar compiled_;
  grammar::ParserStates states_;
  grammar::TokenTrie trie_;
  grammar::MaskCache cache_{1 << 20};
  grammar::TokenMasks masks_;
};

}  // namespace weft
