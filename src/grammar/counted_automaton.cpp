#include "grammar/counted_automaton.h"

#include <algorithm>
#include <deque>

#include "base/error.h"

namespace weft::grammar {

CharacterCounter::CharacterCounter(const Automaton& automaton, int least, int most, Budget& budget)
    : least_(static_cast<std::uint32_t>(least)),
      most_(most == kUnbounded ? kUncounted : static_cast<std::uint32_t>(most)) {
  Predecessors before(automaton.size());
  for (std::size_t i = 0; i < automaton.size(); ++i) {
    counts_.push_back(automaton[i].counts);
    for (const ByteEdge& edge : automaton[i].bytes) {
      std::vector<int>& known = before[static_cast<std::size_t>(edge.target)];
      if (known.empty() || known.back() != static_cast<int>(i)) known.push_back(static_cast<int>(i));
    }
  }
  find_distances(automaton, before);
  find_allowed(before, budget);
}

// From the ends backwards, what counts nothing before what counts one.
void CharacterCounter::find_distances(const Automaton& automaton, const Predecessors& before) {
  distances_.assign(automaton.size(), kUncounted);
  std::vector<bool> is_done(automaton.size(), false);
  std::deque<std::size_t> waiting;
  for (std::size_t i = 0; i < automaton.size(); ++i) {
    if (!automaton[i].accepts) continue;
    distances_[i] = 0;
    waiting.push_back(i);
  }
  while (!waiting.empty()) {
    const std::size_t state = waiting.front();
    waiting.pop_front();
    if (is_done[state]) continue;
    is_done[state] = true;
    farthest_ = std::max(farthest_, distances_[state]);
    const std::uint32_t distance = distances_[state] + (counts_[state] ? 1 : 0);
    for (const int previous : before[state]) {
      const auto index = static_cast<std::size_t>(previous);
      if (distances_[index] <= distance) continue;
      distances_[index] = distance;
      if (counts_[state]) {
        waiting.push_back(index);
      } else {
        waiting.push_front(index);
      }
    }
  }
}

// By descending numbers: from a state whose step counts one to those of the next number, and from others to their own.
void CharacterCounter::find_allowed(const Predecessors& before, Budget& budget) {
  budget.take_counts(std::size_t{least_} * counts_.size());
  is_allowed_.assign(std::size_t{least_} * counts_.size(), false);
  std::vector<int> waiting;
  for (std::uint32_t count = least_; count-- > 0;) {
    budget.check_time();
    const auto add_before = [&](int state) {
      for (const int previous : before[static_cast<std::size_t>(state)]) {
        if (is_allowed_[index_of(previous, count)]) continue;
        is_allowed_[index_of(previous, count)] = true;
        waiting.push_back(previous);
      }
    };
    for (int state = 0; state < static_cast<int>(counts_.size()); ++state)
      if (counts_[static_cast<std::size_t>(state)] && allows(state, count + 1)) add_before(state);
    while (!waiting.empty()) {
      const int state = waiting.back();
      waiting.pop_back();
      if (!counts_[static_cast<std::size_t>(state)]) add_before(state);
    }
  }
}

CountedAutomaton make_counted_automaton(const Grammar& grammar, const ExpressionNode& node, Budget& budget) {
  Automaton automaton = product_of(make_automaton(grammar, node.parts[0], budget),
                                   make_automaton(grammar, node.parts[1], budget), Product::counted, budget);
  CharacterCounter counter(automaton, node.least, node.most, budget);
  return {std::move(automaton), std::move(counter)};
}

}  // namespace weft::grammar
