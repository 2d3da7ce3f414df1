#include "ir/pattern_match.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "ir/pattern_value.h"

namespace weft {
namespace {

std::string shown(const GraphValue& value) {
  if (!value.name.empty()) return "%" + value.name;
  return value.producer == nullptr ? "an input" : value.producer->name;
}

std::string shown(const Node& node) { return node.results.empty() ? node.name : shown(*node.result()); }

// Skips views whose result has the same type as their operand.
const GraphValue* behind_noops(const GraphValue* value) {
  while (value->producer != nullptr && value->producer->op != nullptr && value->producer->op->is_view &&
         value->producer->operands[0] != nullptr && value->producer->operands[0]->meta == value->meta)
    value = value->producer->operands[0];
  return value;
}

// Each commutative node doubles the number of ways to match. After this many steps the match fails.
constexpr int kMostSteps = 20'000;

// The bindings of one attempt. It is cheap to copy, since patterns are small.
struct State {
  PatternMatch match;
  std::vector<bool> value_bound;  // by wildcard
  int matched = 0;                // nodes whose op fitted
  // Pairs of wanted and given attributes; the wanted ones contain wildcards and are compared after all are bound.
  std::vector<std::pair<Attribute, Attribute>> expressions;
};

class Attempt {
 public:
  Attempt(const Pattern& pattern, std::int64_t& visits, Mismatch* mismatch)
      : pattern_(pattern), visits_(visits), mismatch_(mismatch) {
    if (mismatch != nullptr) *mismatch = {};
    state_.match.nodes.resize(pattern.before.nodes.size());
    state_.match.values.resize(pattern.wildcards.size());
    state_.match.attributes.resize(pattern.wildcards.size());
    state_.value_bound.resize(pattern.wildcards.size());
  }

  std::optional<PatternMatch> run(int start, Node* node) {
    if (!fits(start, node) || !complete() || !binds_agree() || !is_private() || !reads_others()) return std::nullopt;
    return std::move(state_.match);
  }

 private:
  bool fail(const Node* at, int pattern_node, const std::function<std::string()>& reason) {
    return ended(at, pattern_node, true, reason);
  }
  bool lacks(const Node* at, int pattern_node, const std::function<std::string()>& reason) {
    return ended(at, pattern_node, false, reason);
  }
  bool ended(const Node* at, int pattern_node, bool in_place, const std::function<std::string()>& reason) {
    if (mismatch_ == nullptr) return false;
    const auto rank = std::pair(state_.matched, in_place);
    if (!mismatch_->reason.empty() && rank <= std::pair(mismatch_->matched, mismatch_->in_place)) return false;
    *mismatch_ = {state_.matched, in_place, at, pattern_node, reason()};
    for (const Node* found : state_.match.nodes)
      if (found != nullptr) mismatch_->nodes.push_back(found);
    return false;
  }

  // Matches the node and its producers in the pattern.
  bool fits(int index, Node* node) {
    ++visits_;
    if (++steps_ > kMostSteps)
      return lacks(node, index, [&] { return fmt::format("{}: has too many ways to be looked at", shown(*node)); });
    Node*& taken = state_.match.nodes[static_cast<std::size_t>(index)];
    const PatternNode& wanted = pattern_.before.nodes[static_cast<std::size_t>(index)];
    if (taken != nullptr)
      return taken == node || lacks(node, index, [&] {
               return fmt::format("{}: is another {} than {}", shown(*node), wanted.name, shown(*taken));
             });
    if (node->kind != NodeKind::op || node->name != wanted.name)
      return lacks(node, index, [&] {
        return fmt::format("{}: is {}, wanted {}", shown(*node),
                           node->kind == NodeKind::op ? node->name : "a result of the graph", wanted.name);
      });
    if (std::find(state_.match.nodes.begin(), state_.match.nodes.end(), node) != state_.match.nodes.end())
      return lacks(node, index, [&] { return fmt::format("{}: matches two nodes of the pattern", shown(*node)); });
    taken = node;
    ++state_.matched;
    return operands_fit(index, *node) && attributes_fit(index, *node) && results_fit(index, *node);
  }

  bool attributes_fit(int index, const Node& node) {
    const PatternNode& wanted = pattern_.before.nodes[static_cast<std::size_t>(index)];
    for (const auto& [key, value] : wanted.attributes.entries()) {
      const Attribute* given = node.attributes.find(key);
      const auto refuse = [&](const std::string& text) {
        return fail(&node, index, [&] {
          return fmt::format("{}: {} is {}, wanted {}", shown(node), key, given == nullptr ? "absent" : given->text(),
                             text);
        });
      };
      if (given == nullptr) return refuse(value.text());
      if (const auto wrong = bind(value, *given)) return refuse(*wrong);
    }
    return true;
  }

  // Returns nothing when the attribute fits (expressions are compared later), else the text of what was wanted.
  std::optional<std::string> bind(const Attribute& wanted, const Attribute& given) {
    if (const Dim* symbol = lone_wildcard(wanted)) return bind_wildcard(symbol->symbol_name().substr(1), given);
    if (const auto* list = std::get_if<AttributeList>(&wanted.storage()); list != nullptr && holds_wildcard(wanted)) {
      const auto* other = std::get_if<AttributeList>(&given.storage());
      if (other == nullptr || other->size() != list->size()) return wanted.text();
      for (std::size_t i = 0; i < list->size(); ++i)
        if (auto wrong = bind((*list)[i], (*other)[i])) return wrong;
      return std::nullopt;
    }
    if (holds_wildcard(wanted)) {
      state_.expressions.emplace_back(wanted, given);
      return std::nullopt;
    }
    return same_value(wanted, given) ? std::nullopt : std::optional(wanted.text());
  }

  std::optional<std::string> bind_wildcard(const std::string& name, const Attribute& given) {
    const auto index = static_cast<std::size_t>(pattern_.index_of(name));
    const Wildcard& wildcard = pattern_.wildcards[index];
    if (wildcard.kind == WildcardKind::integer && !given.is_none() && !number_of(given)) return "a number";
    for (const Condition& condition : wildcard.conditions)
      if (!holds(condition, given)) return wanted_text(condition);
    std::optional<Attribute>& bound = state_.match.attributes[index];
    if (bound && !same_value(*bound, given)) return fmt::format("{}, as elsewhere in the pattern", bound->text());
    bound = given;
    return std::nullopt;
  }

  bool operands_fit(int index, const Node& node) {
    const PatternNode& wanted = pattern_.before.nodes[static_cast<std::size_t>(index)];
    if (wanted.operands.size() != node.operands.size())
      return fail(&node, index, [&] {
        return fmt::format("{}: takes {} values, wanted {}", shown(node), node.operands.size(), wanted.operands.size());
      });
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < node.operands.size(); ++i) order.push_back(i);
    if (!node.op->is_commutative) return operands_fit(index, node, order);
    const State before = state_;
    if (operands_fit(index, node, order)) return true;
    state_ = before;
    std::swap(order[0], order[1]);
    return operands_fit(index, node, order);
  }

  bool operands_fit(int index, const Node& node, const std::vector<std::size_t>& order) {
    const PatternNode& wanted = pattern_.before.nodes[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < order.size(); ++i)
      if (!operand_fits(index, node, wanted.operands[i], node.operands[order[i]])) return false;
    return true;
  }

  bool operand_fits(int index, const Node& node, const PatternOperand& wanted, GraphValue* given) {
    if (wanted.wildcard >= 0) return value_fits(index, node, wanted.wildcard, given);
    if (!wanted.present())
      return given == nullptr || lacks(&node, index, [&] {
               return fmt::format("{}: is given {}, wanted none in its place", shown(node), shown(*given));
             });
    const std::string& name = pattern_.before.nodes[static_cast<std::size_t>(wanted.node)].name;
    if (given == nullptr)
      return lacks(&node, index, [&] { return fmt::format("{}: an operand is none, wanted {}", shown(node), name); });
    const GraphValue* source = behind_noops(given);
    if (source->producer == nullptr)
      return lacks(&node, wanted.node,
                   [&] { return fmt::format("{}: is an input of the graph, wanted {}", shown(*source), name); });
    if (source->index != wanted.result && source->producer->name == name)
      return lacks(&node, wanted.node, [&] {
        return fmt::format("{}: is result {} of {}, wanted result {}", shown(*source), source->index, name,
                           wanted.result);
      });
    return fits(wanted.node, source->producer);
  }

  bool value_fits(int index, const Node& node, int wildcard, GraphValue* given) {
    const auto at = static_cast<std::size_t>(wildcard);
    const Wildcard& wanted = pattern_.wildcards[at];
    if (state_.value_bound[at])
      return state_.match.values[at] == given || fail(&node, index, [&] {
               return fmt::format("{}: is given {} as ?{}, which is {} elsewhere in the pattern", shown(node),
                                  given == nullptr ? "none" : shown(*given), wanted.name,
                                  state_.match.values[at] == nullptr ? "none" : shown(*state_.match.values[at]));
             });
    state_.value_bound[at] = true;
    state_.match.values[at] = given;
    if (!wanted.type) return true;
    if (given == nullptr)
      return fail(&node, index, [&] { return fmt::format("{}: ?{} is none", shown(node), wanted.name); });
    return type_fits(index, node, *wanted.type, *given);
  }

  bool results_fit(int index, const Node& node) {
    const PatternNode& wanted = pattern_.before.nodes[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < wanted.results.size() && i < node.results.size(); ++i)
      if (wanted.results[i].type && !type_fits(index, node, *wanted.results[i].type, *node.results[i])) return false;
    return true;
  }

  bool type_fits(int index, const Node& node, const PatternType& wanted, const GraphValue& given) {
    if (type_binds(wanted, given.meta)) return true;
    return fail(&node, index,
                [&] { return fmt::format("{}: is {}, wanted {}", shown(given), given.meta.text(), wanted.text()); });
  }

  bool type_binds(const PatternType& wanted, const Meta& given) {
    if (wanted.kind != given.kind) return false;
    if (wanted.kind == MetaKind::kv) return wanted.open_shape || wanted.kv == given.kv;
    if (wanted.kind != MetaKind::tensor) return true;
    if (wanted.dtype_wildcard.empty() ? wanted.dtype != given.dtype
                                      : bind_wildcard(wanted.dtype_wildcard, given.dtype).has_value())
      return false;
    const std::size_t stated = wanted.shape.size(), all = given.shape.size();
    if (wanted.open_shape ? all < stated : all != stated) return false;
    for (std::size_t i = 0; i < stated; ++i)
      if (bind(wanted.shape[i], given.shape[all - stated + i])) return false;
    if (!wanted.packed.empty() && wanted.packed != given.packed) return false;
    if (!wanted.strides) return true;
    const Shape strides = given.full_strides();
    for (std::size_t i = 0; i < strides.size(); ++i)
      if (bind((*wanted.strides)[i], strides[i])) return false;
    return true;
  }

  // Matches the nodes of `before` that the anchor does not read: each is searched among the users of matched values.
  bool complete() {
    const auto missing = std::find(state_.match.nodes.begin(), state_.match.nodes.end(), nullptr);
    if (missing == state_.match.nodes.end()) return true;
    for (std::size_t i = 0; i < state_.match.nodes.size(); ++i) {
      if (state_.match.nodes[i] != nullptr) continue;
      const std::optional<Candidates> candidates = candidates_for(i);
      if (!candidates) continue;
      const State before = state_;
      for (Node* candidate : candidates->users) {
        if (fits(static_cast<int>(i), candidate) && complete()) return true;
        state_ = before;
      }
      const std::string& name = pattern_.before.nodes[i].name;
      return lacks(nullptr, static_cast<int>(i),
                   [&] { return fmt::format("{}: no {} that fits reads it", shown(*candidates->read), name); });
    }
    return lacks(nullptr, -1, [] { return std::string("the pattern falls into parts"); });
  }

  struct Candidates {
    const GraphValue* read;  // an operand that is bound already
    std::vector<Node*> users;
  };

  // Returns the graph nodes that may match the pattern node, in a fixed order; nothing when none of its operands is
  // bound.
  std::optional<Candidates> candidates_for(std::size_t index) const {
    for (const PatternOperand& operand : pattern_.before.nodes[index].operands) {
      const GraphValue* value = nullptr;
      if (operand.wildcard >= 0) value = state_.match.values[static_cast<std::size_t>(operand.wildcard)];
      if (operand.node >= 0)
        if (const Node* producer = state_.match.nodes[static_cast<std::size_t>(operand.node)])
          value = producer->result(static_cast<std::size_t>(operand.result));
      if (value == nullptr) continue;
      std::vector<Node*> users;
      for (const Use& use : value->uses)
        if (use.node->name == pattern_.before.nodes[index].name &&
            std::find(users.begin(), users.end(), use.node) == users.end())
          users.push_back(use.node);
      // Use lists have no fixed order, so sort by name; names are unique.
      std::sort(users.begin(), users.end(), [](const Node* a, const Node* b) { return shown(*a) < shown(*b); });
      return Candidates{value, std::move(users)};
    }
    return std::nullopt;
  }

  bool binds_agree() {
    for (const auto& [wanted, given] : state_.expressions) {
      const Attribute value = state_.match.substitute(pattern_, wanted);
      if (!same_value(value, given))
        return fail(state_.match.nodes[0], 0, [&] {
          return fmt::format("{}: {} is {}, wanted {}", shown(*state_.match.nodes[0]), wanted.text(), given.text(),
                             value.text());
        });
    }
    return true;
  }

  bool is_returned(std::size_t node, int result) const {
    const PatternOperand place{.node = static_cast<int>(node), .result = result};
    return std::find(pattern_.before.results.begin(), pattern_.before.results.end(), place) !=
           pattern_.before.results.end();
  }

  // No node outside the match reads a value that the rewrite removes.
  bool is_private() {
    const std::vector<Node*>& nodes = state_.match.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const auto& result : nodes[i]->results) {
        if (is_returned(i, result->index)) continue;
        if (const Node* user = outside_user(*result))
          return fail(nodes[i], static_cast<int>(i), [&] {
            return user->kind == NodeKind::result
                       ? fmt::format("{}: is returned by the graph", shown(*result))
                       : fmt::format("{}: is also used by {} ({})", shown(*result), shown(*user), user->name);
          });
      }
    return true;
  }

  // No wildcard is a value of the match itself, which the rewrite removes.
  bool reads_others() {
    const std::vector<Node*>& nodes = state_.match.nodes;
    for (std::size_t i = 0; i < state_.match.values.size(); ++i) {
      const GraphValue* value = state_.match.values[i];
      if (value == nullptr || value->producer == nullptr) continue;
      const auto own = std::find(nodes.begin(), nodes.end(), behind_noops(value)->producer);
      if (own == nodes.end() || *own == nullptr) continue;
      return fail(*own, static_cast<int>(own - nodes.begin()), [&] {
        return fmt::format("{}: is ?{}, too, and a result of {}, which is replaced", shown(*value),
                           pattern_.wildcards[i].name, (*own)->name);
      });
    }
    return true;
  }

  // Returns a user outside the match. A view that changes nothing does not count as a user; its own users do.
  const Node* outside_user(const GraphValue& value) const {
    const Node* found = nullptr;
    for (const Use& use : value.uses) {
      const std::vector<Node*>& nodes = state_.match.nodes;
      if (std::find(nodes.begin(), nodes.end(), use.node) != nodes.end()) continue;
      const bool is_noop = use.node->op != nullptr && use.node->op->is_view && use.operand == 0 &&
                           use.node->result()->meta == value.meta;
      const Node* user = is_noop ? outside_user(*use.node->result()) : use.node;
      if (user != nullptr && (found == nullptr || shown(*user) < shown(*found))) found = user;
    }
    return found;
  }

  const Pattern& pattern_;
  std::int64_t& visits_;
  Mismatch* mismatch_;
  State state_;
  int steps_ = 0;
};

std::map<std::string, Dim> bound_dims(const Pattern& pattern, const PatternMatch& match) {
  std::map<std::string, Dim> dims;
  for (std::size_t i = 0; i < pattern.wildcards.size(); ++i)
    if (match.attributes[i])
      if (const Dim* dim = std::get_if<Dim>(&match.attributes[i]->storage()))
        dims.emplace("?" + pattern.wildcards[i].name, *dim);
  return dims;
}

}  // namespace

Attribute PatternMatch::substitute(const Pattern& pattern, const Attribute& attribute) const {
  if (const Dim* symbol = lone_wildcard(attribute)) {
    const int index = pattern.index_of(symbol->symbol_name().substr(1));
    CHECK(index >= 0 && attributes[static_cast<std::size_t>(index)], "[{}] {} is not bound", pattern.name,
          symbol->text());
    return *attributes[static_cast<std::size_t>(index)];
  }
  if (const auto* list = std::get_if<AttributeList>(&attribute.storage())) {
    AttributeList elements;
    for (const Attribute& element : *list) elements.push_back(substitute(pattern, element));
    return elements;
  }
  if (!holds_wildcard(attribute)) return attribute;
  return attribute.dim().substitute(bound_dims(pattern, *this));
}

PatternMatcher::PatternMatcher(const Pattern& pattern) : pattern_(pattern) {
  std::vector<bool> read(pattern.before.nodes.size());
  for (const PatternNode& node : pattern.before.nodes)
    for (const PatternOperand& operand : node.operands)
      if (operand.node >= 0) read[static_cast<std::size_t>(operand.node)] = true;
  for (std::size_t i = 0; i < read.size(); ++i)
    if (!read[i]) anchor_ = static_cast<int>(i);
  CHECK(anchor_ >= 0, "[{}] before holds no node", pattern.name);
}

std::optional<PatternMatch> PatternMatcher::match(Node* node, Mismatch* mismatch) {
  return match_from(anchor_, node, mismatch);
}

std::optional<PatternMatch> PatternMatcher::match_from(int pattern_node, Node* node, Mismatch* mismatch) {
  return Attempt(pattern_, visits_, mismatch).run(pattern_node, node);
}

}  // namespace weft
