#pragma once

// An automaton with a bound of how many characters its texts have. The number of characters is no part of its states,
// since they would be as many as its states times the bound: it is counted beside the state.

#include <cstdint>
#include <vector>

#include "grammar/automaton.h"

namespace weft::grammar {

// Counts the states of an automaton that the text passes and that have `counts`, and knows from which states and
// numbers an end within the bounds can be reached.
class CharacterCounter {
 public:
  // Of a state whose bounds no longer matter: all that the automaton accepts may follow.
  static constexpr std::uint32_t kUncounted = 0xFFFFFFFF;

  // `most` may be kUnbounded.
  CharacterCounter(const Automaton& automaton, int least, int most, Budget& budget);

  // The number after a step to the state.
  std::uint32_t after(int state, std::uint32_t count) const {
    if (count == kUncounted || !counts_[static_cast<std::size_t>(state)]) return count;
    return most_ == kUncounted && count == least_ ? count : count + 1;
  }
  // Whether an end within the bounds can be reached.
  bool allows(int state, std::uint32_t count) const {
    const std::uint32_t distance = distances_[static_cast<std::size_t>(state)];
    if (distance == kUncounted || count == kUncounted) return distance != kUncounted;
    if (count < least_) return is_allowed_[index_of(state, count)];
    return most_ == kUncounted || (count <= most_ && distance <= most_ - count);
  }
  bool may_end(std::uint32_t count) const { return count >= least_; }
  // Whether the next `length` bytes may be any that the automaton accepts, whatever the bounds are.
  bool is_free(std::uint32_t count, std::uint32_t length) const {
    if (count < least_) return false;
    return most_ == kUncounted || std::uint64_t{count} + length + farthest_ <= most_;
  }

 private:
  // Of each state the states before it, each once.
  using Predecessors = std::vector<std::vector<int>>;

  void find_distances(const Automaton& automaton, const Predecessors& before);
  void find_allowed(const Predecessors& before, Budget& budget);
  std::size_t index_of(int state, std::uint32_t count) const {
    return static_cast<std::size_t>(count) * counts_.size() + static_cast<std::size_t>(state);
  }

  std::uint32_t least_, most_;  // most_: kUncounted if unbounded
  std::vector<bool> counts_;    // of each state
  // The least number that is counted from a state to an end; kUncounted if no end can be reached.
  std::vector<std::uint32_t> distances_;
  std::uint32_t farthest_ = 0;
  // By numbers below least_: there the distance is not enough, since an end can be too near.
  std::vector<bool> is_allowed_;
};

struct CountedAutomaton {
  Automaton automaton;
  CharacterCounter counter;

  bool matches_something() const { return counter.allows(0, 0); }
};

// Of an expression of the kind `counted`.
CountedAutomaton make_counted_automaton(const Grammar& grammar, const ExpressionNode& node, Budget& budget);

}  // namespace weft::grammar
