#pragma once

// Which characters a grammar allows in any order for some time, as within a string of JSON: a walk over the tokens need
// not look at those that have no others.

#include <cstdint>
#include <deque>
#include <vector>

#include "grammar/character_kinds.h"
#include "grammar/parser_states.h"

namespace weft::grammar {

class FreeCharacters {
 public:
  // `stays_inside`: texts after which the state may end are not counted. `states` must outlive this object.
  FreeCharacters(ParserStates& states, bool stays_inside) : states_(states), stays_inside_(stays_inside) {}

  // The kinds of which every text of at most `count` characters, 1 or more, is allowed from this state on, and so is
  // each begin of its bytes. Fewer while few questions about the state were asked.
  KindSet kinds(StateId state, std::uint32_t count);
  // The kinds of which every text of at most limit() characters is allowed, with its begins, and no longer one. None
  // while few questions about the state were asked.
  KindSet limited_kinds(StateId state);
  std::uint32_t limit(StateId state) { return made(state).limit; }
  // The kinds that have a character with an allowed first byte; kNoCharacters stands for all other bytes. More while
  // few questions about the state were asked.
  KindSet possible(StateId state);
  // After ParserStates::keep(), whose ids mean other states.
  void clear();

 private:
  struct Known {
    std::uint32_t questions = 0;
    bool is_made = false;
    StateId next = kDead;         // after a character of these kinds
    std::vector<KindSet> counts;  // by the number of characters, less one
    KindSet possible = ~KindSet{0};
    std::uint32_t limit = kUnknownLimit;  // of texts of counts[0]; 0: none that is known
  };
  static constexpr std::uint32_t kUnknownLimit = 0xFFFFFFFF;

  Known& of(StateId state);
  // False for the first questions about a state.
  bool is_worth(StateId state);
  Known& made(StateId state);
  KindSet kinds_of(Known& known, StateId state, std::uint32_t count);
  void add_one_character(StateId state, Known& known);
  StateId after_ranges(StateId state, const CharacterRanges& ranges);
  KindSet first_bytes(StateId state);
  bool is_free(StateId state) const { return state != kDead && !(stays_inside_ && states_.may_end(state)); }

  ParserStates& states_;
  bool stays_inside_;
  std::deque<Known> all_;
  std::vector<Known*> by_state_;
};

}  // namespace weft::grammar
