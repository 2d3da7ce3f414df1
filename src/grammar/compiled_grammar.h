#pragma once

// A grammar as tables: the automata of all its rules, whose states call rules and return from them.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/counted_automaton.h"
#include "grammar/grammar.h"

namespace weft::grammar {

struct RuleCall {
  int start;   // of the called rule
  int resume;  // where the caller goes on
};

// Never changes; several threads may use it. From each state that can be reached the end can be reached.
class CompiledGrammar {
 public:
  struct State {
    bool accepts = false;    // the rule may end here
    bool reads = false;      // a byte may follow
    bool only_ends = false;  // neither a byte nor a call may follow
    int counted_rule = -1;   // the index of the rule's counter and of its first state
    std::uint32_t first_call = 0, call_count = 0;
  };

  // UserError for a grammar that no text matches, that is left-recursive, or that is too large.
  explicit CompiledGrammar(const Grammar& grammar);

  int start() const { return start_; }
  std::size_t state_count() const { return states_.size(); }
  const State& state(int state) const { return states_[static_cast<std::size_t>(state)]; }
  std::span<const RuleCall> calls(int state) const {
    const State& of = states_[static_cast<std::size_t>(state)];
    return std::span(calls_).subspan(of.first_call, of.call_count);
  }

  // Of the characters of the rule of a state; null for most rules.
  const CharacterCounter* counter(int state) const {
    const int rule = states_[static_cast<std::size_t>(state)].counted_rule;
    return rule < 0 ? nullptr : &counted_rules_[static_cast<std::size_t>(rule)].counter;
  }
  // The state among those of its rule, as its counter wants it.
  int state_of_counter(int state) const {
    const int rule = states_[static_cast<std::size_t>(state)].counted_rule;
    return state - counted_rules_[static_cast<std::size_t>(rule)].first_state;
  }

  // Bytes of one class lead to the same states everywhere.
  int class_count() const { return class_count_; }
  int class_of(std::uint8_t byte) const { return class_of_[byte]; }
  // The next state; -1 for none.
  int next(int state, int byte_class) const {
    return next_[static_cast<std::size_t>(state) * static_cast<std::size_t>(class_count_) +
                 static_cast<std::size_t>(byte_class)];
  }

 private:
  struct Parts;
  struct CountedRule {
    int first_state;
    CharacterCounter counter;
  };

  void set_classes(const Parts& parts);
  void set_tables(const Parts& parts);

  int start_ = 0;
  int class_count_ = 1;
  std::array<std::uint8_t, 256> class_of_{};
  std::vector<State> states_;
  std::vector<RuleCall> calls_;
  std::vector<CountedRule> counted_rules_;
  std::vector<std::int32_t> next_;
};

}  // namespace weft::grammar
