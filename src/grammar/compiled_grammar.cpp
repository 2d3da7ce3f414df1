#include "grammar/compiled_grammar.h"

#include <algorithm>
#include <bitset>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/automaton.h"

namespace weft::grammar {
namespace {

// Where a rule is, for messages.
std::string place_of(const Rule& rule) {
  if (rule.keywords.empty()) return fmt::format("[grammar] the rule {}", quote(rule.name));
  const std::string document = rule.document.empty() ? "" : rule.document + ": ";
  return fmt::format("{}[schema] at {}: {}", document, quote("#" + rule.name), rule.keywords);
}

}  // namespace

// The automata of the rules that are called, as one list of states.
struct CompiledGrammar::Parts {
  const Grammar& grammar;
  std::vector<AutomatonState> states = {};
  std::vector<int> starts = {};        // of each rule; -1 for one that is not called
  std::vector<int> rule_of = {};       // of each state
  std::vector<char> can_end = {};      // whether the end of its rule can be reached
  std::vector<char> is_nullable = {};  // of each rule: matches the empty text
  std::vector<CountedRule> counted_rules = {};
  std::vector<int> counted_rule_of = {};  // of each state

  void add_automata(Budget& budget);
  Automaton automaton_of(const Rule& rule, Budget& budget);
  int unmatched_rule() const;
  void drop_dead_ends(const Budget& budget);
  void find_nullable(const Budget& budget);
  void check_left_recursion() const;
  int start_of(int rule) const { return starts[static_cast<std::size_t>(rule)]; }
};

void CompiledGrammar::Parts::add_automata(Budget& budget) {
  starts.assign(grammar.rules.size(), -1);
  std::vector<int> waiting = {grammar.root};
  starts[static_cast<std::size_t>(grammar.root)] = 0;
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const int rule = waiting[next];
    const int base = static_cast<int>(states.size()), counted = static_cast<int>(counted_rules.size());
    Automaton automaton = automaton_of(grammar.rules[static_cast<std::size_t>(rule)], budget);
    const bool is_counted = std::ssize(counted_rules) > counted;
    starts[static_cast<std::size_t>(rule)] = base;
    for (AutomatonState& state : automaton) {
      for (ByteEdge& edge : state.bytes) edge.target += base;
      for (CallEdge& edge : state.calls) {
        edge.target += base;
        int& start = starts[static_cast<std::size_t>(edge.rule)];
        if (start >= 0) continue;
        start = 0;  // until its automaton is there
        waiting.push_back(edge.rule);
      }
      states.push_back(std::move(state));
      rule_of.push_back(rule);
      counted_rule_of.push_back(is_counted ? counted : -1);
    }
  }
}

// Adds the counter of a counted rule.
Automaton CompiledGrammar::Parts::automaton_of(const Rule& rule, Budget& budget) {
  try {
    if (rule.body->kind != ExpressionKind::counted) return make_automaton(grammar, rule.body, budget);
    CountedAutomaton counted = make_counted_automaton(grammar, *rule.body, budget);
    if (!counted.matches_something()) return Automaton(1);
    counted_rules.push_back({static_cast<int>(states.size()), std::move(counted.counter)});
    return std::move(counted.automaton);
  } catch (const OverBudget& error) {
    fail_user("{} {}", place_of(rule), error.what());
  }
}

// Removes what leads to no end, so that whatever is allowed can be completed.
void CompiledGrammar::Parts::drop_dead_ends(const Budget& budget) {
  can_end.assign(states.size(), 0);
  const auto ends = [&](int state) { return can_end[static_cast<std::size_t>(state)] != 0; };
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    budget.check_time();
    for (std::size_t i = states.size(); i-- > 0;) {
      if (can_end[i] != 0) continue;
      const AutomatonState& state = states[i];
      const bool can = state.accepts ||
                       std::any_of(state.bytes.begin(), state.bytes.end(),
                                   [&](const ByteEdge& edge) { return ends(edge.target); }) ||
                       std::any_of(state.calls.begin(), state.calls.end(), [&](const CallEdge& edge) {
                         return ends(edge.target) && ends(start_of(edge.rule));
                       });
      if (!can) continue;
      can_end[i] = 1;
      has_changed = true;
    }
  }
  if (!ends(start_of(grammar.root)))
    fail_user("{}: no text matches it", place_of(grammar.rules[static_cast<std::size_t>(unmatched_rule())]));
  for (AutomatonState& state : states) {
    std::erase_if(state.bytes, [&](const ByteEdge& edge) { return !ends(edge.target); });
    std::erase_if(state.calls, [&](const CallEdge& edge) { return !ends(edge.target) || !ends(start_of(edge.rule)); });
  }
}

// The cause why no text matches the root: a rule that cannot end, whose calls can, or one that calls itself.
int CompiledGrammar::Parts::unmatched_rule() const {
  std::vector<char> is_passed(grammar.rules.size(), 0);
  int rule = grammar.root;
  for (bool goes_on = true; goes_on;) {
    is_passed[static_cast<std::size_t>(rule)] = 1;
    goes_on = false;
    const int of = rule;
    for (std::size_t i = 0; i < states.size() && !goes_on; ++i) {
      if (rule_of[i] != of) continue;
      for (const CallEdge& edge : states[i].calls) {
        const bool is_dead = can_end[static_cast<std::size_t>(start_of(edge.rule))] == 0;
        if (!is_dead || is_passed[static_cast<std::size_t>(edge.rule)] != 0) continue;
        rule = edge.rule;
        goes_on = true;
        break;
      }
    }
  }
  return rule;
}

void CompiledGrammar::Parts::find_nullable(const Budget& budget) {
  is_nullable.assign(grammar.rules.size(), 0);
  std::vector<char> is_empty(states.size(), 0);  // reaches the end of its rule without a byte
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    budget.check_time();
    for (std::size_t i = states.size(); i-- > 0;) {
      if (is_empty[i] != 0) continue;
      const AutomatonState& state = states[i];
      const bool is = state.accepts || std::any_of(state.calls.begin(), state.calls.end(), [&](const CallEdge& edge) {
                        return is_nullable[static_cast<std::size_t>(edge.rule)] != 0 &&
                               is_empty[static_cast<std::size_t>(edge.target)] != 0;
                      });
      if (!is) continue;
      is_empty[i] = 1;
      has_changed = true;
      const auto rule = static_cast<std::size_t>(rule_of[i]);
      if (starts[rule] == static_cast<int>(i)) is_nullable[rule] = 1;
    }
  }
}

// A rule must not call itself before it has read a byte: its stack would grow without end.
void CompiledGrammar::Parts::check_left_recursion() const {
  const std::size_t count = grammar.rules.size();
  std::vector<std::vector<int>> called(count);  // before a byte
  for (std::size_t rule = 0; rule < count; ++rule) {
    if (starts[rule] < 0) continue;
    std::vector<int> reached = {starts[rule]};
    for (std::size_t next = 0; next < reached.size(); ++next)
      for (const CallEdge& edge : states[static_cast<std::size_t>(reached[next])].calls) {
        called[rule].push_back(edge.rule);
        const bool passes = is_nullable[static_cast<std::size_t>(edge.rule)] != 0;
        if (passes && std::find(reached.begin(), reached.end(), edge.target) == reached.end())
          reached.push_back(edge.target);
      }
  }
  // Removes rules that call none of those that are left; a cycle stays.
  std::vector<char> is_left(count, 1);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t rule = count; rule-- > 0;) {
      if (is_left[rule] == 0) continue;
      const bool calls = std::any_of(called[rule].begin(), called[rule].end(),
                                     [&](int other) { return is_left[static_cast<std::size_t>(other)] != 0; });
      if (calls) continue;
      is_left[rule] = 0;
      has_changed = true;
    }
  }
  const auto found = std::find(is_left.begin(), is_left.end(), 1);
  if (found == is_left.end()) return;
  fail_user("{} is left-recursive, or calls a rule that is: it must read a character before it calls itself",
            place_of(grammar.rules[static_cast<std::size_t>(found - is_left.begin())]));
}

CompiledGrammar::CompiledGrammar(const Grammar& grammar) {
  Budget budget;
  Parts parts{grammar};
  parts.add_automata(budget);
  parts.drop_dead_ends(budget);
  parts.find_nullable(budget);
  parts.check_left_recursion();
  start_ = parts.start_of(grammar.root);
  set_classes(parts);
  set_tables(parts);
  counted_rules_ = std::move(parts.counted_rules);
}

void CompiledGrammar::set_classes(const Parts& parts) {
  std::bitset<257> begins;
  for (const AutomatonState& state : parts.states)
    for (const ByteEdge& edge : state.bytes) {
      begins.set(edge.first);
      begins.set(edge.last + std::size_t{1});
    }
  int current = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins[byte]) ++current;
    class_of_[byte] = static_cast<std::uint8_t>(current);
  }
  class_count_ = current + 1;
}

void CompiledGrammar::set_tables(const Parts& parts) {
  const auto classes = static_cast<std::size_t>(class_count_);
  states_.resize(parts.states.size());
  next_.assign(states_.size() * classes, -1);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const AutomatonState& from = parts.states[i];
    State& to = states_[i];
    to.accepts = from.accepts;
    to.reads = !from.bytes.empty();
    to.counted_rule = parts.counted_rule_of[i];
    to.only_ends = from.accepts && from.bytes.empty() && from.calls.empty();
    to.first_call = static_cast<std::uint32_t>(calls_.size());
    to.call_count = static_cast<std::uint32_t>(from.calls.size());
    for (const CallEdge& edge : from.calls) calls_.push_back({parts.start_of(edge.rule), edge.target});
    for (const ByteEdge& edge : from.bytes)
      for (int byte = edge.first; byte <= edge.last; ++byte)
        next_[i * classes + class_of_[static_cast<std::size_t>(byte)]] = edge.target;
  }
}

}  // namespace weft::grammar
