#include "grammar/automaton.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/sort.h"

namespace weft::grammar {
namespace {

// An automaton that is not deterministic yet.
struct Draft {
  struct State {
    std::vector<ByteEdge> bytes;
    std::vector<CallEdge> calls;
    std::vector<int> empty;  // reached without a byte
  };
  std::vector<State> states;
  int end = 0;
};

class DraftBuilder {
 public:
  DraftBuilder(const Grammar& grammar, Budget& budget) : grammar_(grammar), budget_(budget) {}

  Draft build(const Expression& body) {
    const int start = add();  // state 0
    draft_.end = add();
    link(append(body, start), draft_.end);
    while (!waiting_.empty()) {
      const auto [rule, begin] = waiting_.back();
      waiting_.pop_back();
      link(append(grammar_.rules[static_cast<std::size_t>(rule)].body, begin), draft_.end);
    }
    return std::move(draft_);
  }

 private:
  Draft::State& at(int state) { return draft_.states[static_cast<std::size_t>(state)]; }
  int add() {
    budget_.take_draft_state();
    draft_.states.emplace_back();
    return static_cast<int>(draft_.states.size()) - 1;
  }
  void link(int from, int to) { at(from).empty.push_back(to); }

  // Adds the expression after `from` and returns the state after it.
  int append(const Expression& expression, int from) {
    const ExpressionNode& node = *expression;
    switch (node.kind) {
      case ExpressionKind::text:
        return append_text(node.text, from);
      case ExpressionKind::characters:
        return append_characters(node.set, from);
      case ExpressionKind::sequence:
        for (const Expression& part : node.parts) from = append(part, from);
        return from;
      case ExpressionKind::choice: {
        const int to = add();
        for (const Expression& part : node.parts) {
          const int begin = add();
          link(from, begin);
          link(append(part, begin), to);
        }
        return to;
      }
      case ExpressionKind::repeat:
        return append_repeat(node, from);
      case ExpressionKind::call: {
        const int to = add();
        at(from).calls.push_back({node.rule, to});
        return to;
      }
      case ExpressionKind::jump: {
        const auto [found, is_new] = begins_.try_emplace(node.rule, 0);
        if (is_new) {
          found->second = add();
          waiting_.emplace_back(node.rule, found->second);
        }
        link(from, found->second);
        return add();  // nothing reaches it
      }
      case ExpressionKind::both:
      case ExpressionKind::without:
        return append_product(node, from);
      case ExpressionKind::counted:
        CHECK(false, "a counted expression is within another one");
    }
    return from;
  }

  int append_text(const std::string& text, int from) {
    for (const char c : text) {
      const int to = add();
      const auto byte = static_cast<std::uint8_t>(c);
      at(from).bytes.push_back({byte, byte, to});
      from = to;
    }
    return from;
  }

  int append_characters(const Characters& set, int from) {
    const int to = add();
    for_each_utf8_sequence(set, [&](std::span<const ByteRange> bytes) {
      int state = from;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int next = i + 1 == bytes.size() ? to : add();
        at(state).bytes.push_back({bytes[i].first, bytes[i].last, next});
        state = next;
      }
    });
    return to;
  }

  int append_repeat(const ExpressionNode& node, int from) {
    const Expression& part = node.parts[0];
    for (int i = 0; i < node.least; ++i) {
      budget_.take_draft_state();  // a part of nothing adds no state, but takes time
      from = append(part, from);
    }
    if (node.most == kUnbounded) {
      const int loop = add();
      link(from, loop);
      link(append(part, loop), loop);
      return loop;
    }
    const int to = add();
    link(from, to);
    for (int i = node.least; i < node.most; ++i) {
      budget_.take_draft_state();
      from = append(part, from);
      link(from, to);
    }
    return to;
  }

  int append_product(const ExpressionNode& node, int from) {
    const Product kind = node.kind == ExpressionKind::both ? Product::both : Product::without;
    const Automaton automaton = product_of(make_automaton(grammar_, node.parts[0], budget_),
                                           make_automaton(grammar_, node.parts[1], budget_), kind, budget_);
    const int to = add();
    std::vector<int> states;
    for (std::size_t i = 0; i < automaton.size(); ++i) states.push_back(add());
    link(from, states[0]);
    for (std::size_t i = 0; i < automaton.size(); ++i) {
      for (const auto& [first, last, target] : automaton[i].bytes)
        at(states[i]).bytes.push_back({first, last, states[static_cast<std::size_t>(target)]});
      if (automaton[i].accepts) link(states[i], to);
    }
    return to;
  }

  const Grammar& grammar_;
  Budget& budget_;
  Draft draft_;
  std::map<int, int> begins_;                 // of rules that are jumped to
  std::vector<std::pair<int, int>> waiting_;  // such rules whose bodies are to be added
};

// The subset construction.
class Determinizer {
 public:
  Determinizer(const Draft& draft, Budget& budget) : draft_(draft), budget_(budget), marks_(draft.states.size(), 0) {}

  Automaton run() {
    find({0});
    for (std::size_t i = 0; i < automaton_.size(); ++i) expand(i);
    return std::move(automaton_);
  }

 private:
  // The states reached without a byte are added.
  std::vector<int> closed(std::vector<int> states) {
    ++mark_;
    std::vector<int> all;
    while (!states.empty()) {
      const int state = states.back();
      states.pop_back();
      if (std::exchange(marks_[static_cast<std::size_t>(state)], mark_) == mark_) continue;
      all.push_back(state);
      const std::vector<int>& empty = draft_.states[static_cast<std::size_t>(state)].empty;
      states.insert(states.end(), empty.begin(), empty.end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  int find(std::vector<int> states) {
    std::vector<int> all = closed(std::move(states));
    // States without edges, and states with only an empty edge, do not affect the result.
    std::erase_if(all, [&](int state) {
      const Draft::State& of = draft_.states[static_cast<std::size_t>(state)];
      return state != draft_.end && of.bytes.empty() && of.calls.empty();
    });
    const auto [found, is_new] = ids_.try_emplace(std::move(all), static_cast<int>(automaton_.size()));
    if (is_new) {
      budget_.take_state();
      automaton_.emplace_back().accepts = std::binary_search(found->first.begin(), found->first.end(), draft_.end);
      sets_.push_back(&found->first);
    }
    return found->second;
  }

  void expand(std::size_t id) {
    const std::vector<int>& set = *sets_[id];
    std::vector<ByteEdge> edges;
    std::map<int, std::vector<int>> calls;
    std::vector<int> cuts;
    for (const int state : set) {
      const Draft::State& of = draft_.states[static_cast<std::size_t>(state)];
      edges.insert(edges.end(), of.bytes.begin(), of.bytes.end());
      for (const auto& [rule, target] : of.calls) calls[rule].push_back(target);
    }
    for (const ByteEdge& edge : edges) {
      cuts.push_back(edge.first);
      cuts.push_back(edge.last + 1);
    }
    sort_without_repeats(cuts);
    std::vector<ByteEdge> bytes;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      std::vector<int> targets;
      for (const ByteEdge& edge : edges)
        if (edge.first <= cuts[i] && cuts[i] <= edge.last) targets.push_back(edge.target);
      if (targets.empty()) continue;
      const int target = find(std::move(targets));
      const auto first = static_cast<std::uint8_t>(cuts[i]), last = static_cast<std::uint8_t>(cuts[i + 1] - 1);
      if (!bytes.empty() && bytes.back().target == target && bytes.back().last + 1 == first) {
        bytes.back().last = last;
      } else {
        bytes.push_back({first, last, target});
      }
    }
    std::vector<CallEdge> edges_of_calls;
    for (auto& [rule, targets] : calls) edges_of_calls.push_back({rule, find(std::move(targets))});
    automaton_[id].bytes = std::move(bytes);
    automaton_[id].calls = std::move(edges_of_calls);
  }

  const Draft& draft_;
  Budget& budget_;
  std::vector<int> marks_;
  int mark_ = 0;
  Automaton automaton_;
  std::map<std::vector<int>, int> ids_;
  std::vector<const std::vector<int>*> sets_;
};

// The state that a byte leads to; -1 for none.
int after(const AutomatonState* state, int byte) {
  if (state == nullptr) return -1;
  for (const ByteEdge& edge : state->bytes)
    if (edge.first <= byte && byte <= edge.last) return edge.target;
  return -1;
}

}  // namespace

Automaton make_automaton(const Grammar& grammar, const Expression& body, Budget& budget) {
  const Draft draft = DraftBuilder(grammar, budget).build(body);
  return Determinizer(draft, budget).run();
}

Automaton product_of(const Automaton& a, const Automaton& b, Product kind, Budget& budget) {
  std::map<std::pair<int, int>, int> ids;
  std::vector<std::pair<int, int>> pairs;
  const auto find = [&](std::pair<int, int> pair) {
    const auto [found, is_new] = ids.try_emplace(pair, static_cast<int>(pairs.size()));
    if (is_new) {
      budget.take_state();
      pairs.push_back(pair);
    }
    return found->second;
  };
  find({0, 0});
  Automaton product;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [of_a, of_b] = pairs[i];
    const AutomatonState& state_a = a[static_cast<std::size_t>(of_a)];
    const AutomatonState* state_b = of_b < 0 ? nullptr : &b[static_cast<std::size_t>(of_b)];
    const bool b_accepts = state_b != nullptr && state_b->accepts;
    AutomatonState state;
    state.accepts = state_a.accepts && (kind == Product::counted || b_accepts == (kind == Product::both));
    state.counts = kind == Product::counted && b_accepts;
    for (const ByteEdge& edge : state_a.bytes) {
      for (int byte = edge.first; byte <= edge.last; ++byte) {
        const int next_b = after(state_b, byte);
        if (next_b < 0 && kind == Product::both) continue;
        const int target = find({edge.target, next_b});
        const auto value = static_cast<std::uint8_t>(byte);
        if (!state.bytes.empty() && state.bytes.back().target == target && state.bytes.back().last + 1 == byte) {
          state.bytes.back().last = value;
        } else {
          state.bytes.push_back({value, value, target});
        }
      }
    }
    product.push_back(std::move(state));
  }
  return product;
}

}  // namespace weft::grammar
