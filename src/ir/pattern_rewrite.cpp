#include "ir/pattern_rewrite.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <variant>

#include "base/error.h"
#include "ir/print.h"
#include "ir/trace.h"

namespace weft {
namespace {

using Plan = std::vector<PlannedCall>;

// A cache of inferred results. Inference runs the op's whole meaning, and most matches in a model are alike.
class KnownCalls {
 public:
  const std::vector<Meta>& results_of(const PlannedCall& call, const OpTable& ops) {
    const auto is_same = [&](const PlannedCall& known) {
      return known.op == call.op && known.operands == call.operands && known.attributes == call.attributes;
    };
    const auto found = std::find_if(calls_.begin(), calls_.end(), is_same);
    if (found != calls_.end()) return found->results;
    if (calls_.size() == kMost) calls_.erase(calls_.begin());
    PlannedCall inferred = call;
    inferred.results = infer_results(*call.op, ops, call.operands, call.attributes);
    calls_.push_back(std::move(inferred));
    return calls_.back().results;
  }

 private:
  static constexpr std::size_t kMost = 8;
  std::vector<PlannedCall> calls_;  // oldest first
};

// Returns the calls of `after`, or the reason why they are not possible.
std::variant<Plan, std::string> plan_calls(const Pattern& pattern, const PatternMatch& match, const OpTable& ops,
                                           KnownCalls& known) {
  Plan plan;
  try {
    for (const PatternNode& node : pattern.after.nodes) {
      PlannedCall call{.op = &ops.at(node.name), .sources = node.operands, .operands = {}, .attributes = {}};
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        const PatternOperand& operand = node.operands[i];
        std::optional<Meta> meta;
        if (operand.wildcard >= 0) {
          const GraphValue* value = match.values[static_cast<std::size_t>(operand.wildcard)];
          if (value != nullptr) meta = value->meta;
        } else if (operand.node >= 0) {
          meta = plan[static_cast<std::size_t>(operand.node)].results.at(static_cast<std::size_t>(operand.result));
        }
        const Parameter& parameter = call.op->schema.parameters[std::min(i, call.op->schema.tensor_count() - 1)];
        USER_CHECK(meta || parameter.optional, "[{}] {} must be given", node.name, parameter.name);
        call.operands.push_back(std::move(meta));
      }
      for (const auto& [key, value] : node.attributes.entries())
        call.attributes.set(key, match.substitute(pattern, value));
      call.results = known.results_of(call, ops);
      plan.push_back(std::move(call));
    }
  } catch (const UserError& error) {
    return std::string(error.what());
  }
  return plan;
}

std::string result_of(const Node& node) { return "%" + node.result()->name; }

// The position of a rewrite, and the nodes that read its results and must move after it.
struct Placement {
  Node* last = nullptr;  // the last matched node in graph order
  std::vector<Node*> moved = {};
  std::string refusal = {};
};

class Rewriting {
 public:
  Rewriting(Graph& graph, std::span<const Pattern* const> patterns, const OpTable& ops, const RewriteFilter& refuses)
      : graph_(graph), ops_(ops), refuses_(refuses) {
    for (const Pattern* pattern : patterns) {
      targets_.push_back({pattern, PatternMatcher(*pattern), {.pattern = pattern->name}});
      const PatternMatcher& matcher = targets_.back().matcher;
      by_op_[pattern->before.nodes[static_cast<std::size_t>(matcher.anchor())].name].push_back(targets_.size() - 1);
    }
  }

  std::vector<PatternReport> run(std::int64_t* visits) {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes())
      if (by_op_.contains(node->name)) nodes.push_back(node.get());
    if (!nodes.empty()) {
      name_values();
      number_nodes();
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) try_node(*node);
    name_values();
    std::vector<PatternReport> reports;
    for (Target& target : targets_) {
      if (visits != nullptr) *visits += target.matcher.visits();
      std::reverse(target.report.near_misses.begin(), target.report.near_misses.end());
      reports.push_back(std::move(target.report));
    }
    return reports;
  }

 private:
  struct Target {
    const Pattern* pattern;
    PatternMatcher matcher;
    PatternReport report;
  };

  // Messages name values, and lowering reports nodes by their names.
  void name_values() {
    for (const auto& node : graph_.nodes())
      for (const auto& result : node->results)
        if (result->name.empty()) return assign_names(graph_);
  }

  void number_nodes() {
    number_.clear();
    std::int64_t next = 0;
    for (const auto& node : graph_.nodes()) number_[node.get()] = next += kMaxPatternNodes;
    number_[graph_.result_node()] = next + kMaxPatternNodes;
  }

  void try_node(Node* node) {
    if (erased_.contains(node)) return;
    std::vector<std::pair<PatternReport*, std::string>> almost;  // dropped if a later pattern matches
    for (const std::size_t index : by_op_.at(node->name)) {
      Target& target = targets_[index];
      Mismatch mismatch;
      if (const auto match = target.matcher.match(node, &mismatch)) {
        const std::optional<std::string> refusal = replace(*target.pattern, *match);
        if (!refusal) {
          ++target.report.matched;
          return;
        }
        target.report.near_misses.push_back({node->result()->name, *refusal});
      } else if (is_near(mismatch, target.pattern->before.nodes.size())) {
        almost.emplace_back(&target.report, mismatch.reason);
      }
    }
    for (auto& [report, reason] : almost) report->near_misses.push_back({node->result()->name, std::move(reason)});
  }

  static bool is_near(const Mismatch& mismatch, std::size_t nodes) {
    const auto matched = static_cast<std::size_t>(mismatch.matched);
    return mismatch.in_place ? matched == nodes : nodes >= 3 && matched + 1 >= nodes;
  }

  // Replaces the match. Returns the reason when the match is refused.
  std::optional<std::string> replace(const Pattern& pattern, const PatternMatch& match) {
    auto planned = plan_calls(pattern, match, ops_, known_);
    if (const auto* reason = std::get_if<std::string>(&planned)) return *reason;
    const Plan& plan = std::get<Plan>(planned);
    if (auto refusal = types_differ(pattern, match, plan)) return refusal;
    const Placement placement = place(pattern, match);
    if (!placement.refusal.empty()) return placement.refusal;
    if (refuses_)
      if (auto refusal = refuses_(pattern, match, plan)) return refusal;
    put_in(pattern, match, plan, placement);
    return std::nullopt;
  }

  static GraphValue* replaced(const PatternMatch& match, const PatternOperand& place) {
    return match.nodes[static_cast<std::size_t>(place.node)]->result(static_cast<std::size_t>(place.result));
  }

  static std::optional<std::string> types_differ(const Pattern& pattern, const PatternMatch& match, const Plan& plan) {
    for (std::size_t i = 0; i < pattern.before.results.size(); ++i) {
      const GraphValue& old = *replaced(match, pattern.before.results[i]);
      const PatternOperand& place = pattern.after.results[i];
      const GraphValue* passed = place.wildcard >= 0 ? match.values[static_cast<std::size_t>(place.wildcard)] : nullptr;
      if (place.wildcard >= 0 && passed == nullptr) return fmt::format("%{}: after gives none for it", old.name);
      const Meta& meta =
          passed != nullptr
              ? passed->meta
              : plan[static_cast<std::size_t>(place.node)].results.at(static_cast<std::size_t>(place.result));
      if (meta != old.meta)
        return fmt::format("%{}: is {}, but after gives {}", old.name, old.meta.text(), meta.text());
    }
    return std::nullopt;
  }

  Placement place(const Pattern& pattern, const PatternMatch& match) const {
    Placement placement;
    for (Node* node : match.nodes)
      if (placement.last == nullptr || number_.at(node) > number_.at(placement.last)) placement.last = node;
    const std::set<const Node*> matched(match.nodes.begin(), match.nodes.end());
    std::set<Node*> moved;
    std::vector<const GraphValue*> open;
    for (const PatternOperand& result : pattern.before.results) open.push_back(replaced(match, result));
    while (!open.empty()) {
      const GraphValue* value = open.back();
      open.pop_back();
      for (const Use& use : value->uses) {
        const bool is_own = matched.contains(use.node);
        if (is_own && matched.contains(value->producer)) continue;
        if (is_own) {
          placement.refusal = fmt::format("{}: is computed from what the match gives, and goes into {}",
                                          result_of(*value->producer), result_of(*use.node));
          return placement;
        }
        if (number_.at(use.node) > number_.at(placement.last) || !moved.insert(use.node).second) continue;
        for (const auto& result : use.node->results) open.push_back(result.get());
      }
    }
    placement.moved.assign(moved.begin(), moved.end());
    std::sort(placement.moved.begin(), placement.moved.end(),
              [&](const Node* a, const Node* b) { return number_.at(a) < number_.at(b); });
    return placement;
  }

  void put_in(const Pattern& pattern, const PatternMatch& match, const Plan& plan, const Placement& placement) {
    std::vector<Node*> added;
    const auto value_of = [&](const PatternOperand& place) -> GraphValue* {
      if (place.wildcard >= 0) return match.values[static_cast<std::size_t>(place.wildcard)];
      if (place.node < 0) return nullptr;
      return added[static_cast<std::size_t>(place.node)]->result(static_cast<std::size_t>(place.result));
    };
    for (const PlannedCall& call : plan) {
      std::vector<GraphValue*> operands;
      for (const PatternOperand& source : call.sources) operands.push_back(value_of(source));
      Node* node = graph_.add_op(*call.op, std::move(operands), call.attributes, call.results, placement.last);
      node->origin = placement.last->origin;
      added.push_back(node);
    }
    // number_nodes() leaves room for a whole body between `last` and the node before it.
    for (std::size_t i = 0; i < added.size(); ++i)
      number_[added[i]] = number_.at(placement.last) - static_cast<std::int64_t>(added.size() - i);
    for (std::size_t i = 0; i < pattern.before.results.size(); ++i) {
      GraphValue* old = replaced(match, pattern.before.results[i]);
      GraphValue* now = value_of(pattern.after.results[i]);
      if (now->name.empty()) now->name = old->name;
      graph_.replace_all_uses(old, now);
    }
    for (Node* node : placement.moved) graph_.move_before(node, placement.last);
    std::vector<Node*> matched = match.nodes;
    std::sort(matched.begin(), matched.end(),
              [&](const Node* a, const Node* b) { return number_.at(a) > number_.at(b); });
    for (Node* node : matched) erase_with_views(node);
    if (!placement.moved.empty()) number_nodes();
  }

  // What still reads a matched node are views that change nothing: the matcher looks behind them.
  void erase_with_views(Node* node) {
    for (const auto& result : node->results) {
      const std::vector<Use> uses = result->uses;
      for (const Use& use : uses) {
        CHECK(use.node->op != nullptr && use.node->op->is_view, "{} still reads {}, which a rewrite removes",
              use.node->name, node->name);
        erase_with_views(use.node);
      }
    }
    erased_.insert(node);
    number_.erase(node);
    graph_.erase(node);
  }

  Graph& graph_;
  const OpTable& ops_;
  const RewriteFilter& refuses_;
  KnownCalls known_;
  std::vector<Target> targets_;
  std::map<std::string, std::vector<std::size_t>> by_op_;  // indices of targets, by the op of their anchor
  std::unordered_map<const Node*, std::int64_t> number_;   // increases in graph order
  std::set<const Node*> erased_;
};

}  // namespace

Work& Work::operator+=(const Work& more) {
  bytes += more.bytes;
  instructions += more.instructions;
  cycles += more.cycles;
  return *this;
}

std::vector<PatternReport> rewrite_all(Graph& graph, std::span<const Pattern* const> patterns, const OpTable& ops,
                                       const RewriteFilter& refuses, std::int64_t* visits) {
  return Rewriting(graph, patterns, ops, refuses).run(visits);
}

namespace {

// The best attempt from this node of the graph, as any node of the pattern.
Mismatch best_attempt(PatternMatcher& matcher, const Pattern& pattern, Node* node) {
  Mismatch best;
  for (std::size_t i = 0; i < pattern.before.nodes.size(); ++i) {
    if (node->name != pattern.before.nodes[i].name) continue;
    Mismatch mismatch;
    matcher.match_from(static_cast<int>(i), node, &mismatch);
    if (std::pair(mismatch.matched, mismatch.in_place) > std::pair(best.matched, best.in_place))
      best = std::move(mismatch);
  }
  return best;
}

}  // namespace

PatternFindings find_pattern(Graph& graph, const Pattern& pattern) {
  assign_names(graph);
  PatternMatcher matcher(pattern);
  PatternFindings findings;
  const std::string& anchor = pattern.before.nodes[static_cast<std::size_t>(matcher.anchor())].name;
  const auto nodes_to_be_near = static_cast<int>(std::min<std::size_t>(2, pattern.before.nodes.size()));
  std::set<const Node*> matched, nearly_matched;
  std::map<const Node*, std::string> near;  // the reasons, by anchor
  for (const auto& node : graph.nodes()) {
    if (node->name != anchor) continue;
    Mismatch mismatch;
    if (const auto match = matcher.match(node.get(), &mismatch)) {
      findings.matches.push_back(node->result()->name);
      matched.insert(match->nodes.begin(), match->nodes.end());
    } else if (mismatch.matched >= nodes_to_be_near) {
      near.emplace(node.get(), mismatch.reason);
      nearly_matched.insert(mismatch.nodes.begin(), mismatch.nodes.end());
    }
  }
  for (const auto& node : graph.nodes()) {
    if (matched.contains(node.get())) continue;
    using Kind = FailedAttempt::Kind;
    if (const auto found = near.find(node.get()); found != near.end()) {
      findings.misses.push_back({{node->result()->name, found->second}, Kind::near});
    } else if (Mismatch best = best_attempt(matcher, pattern, node.get()); best.matched > 0) {
      const Kind kind = nearly_matched.contains(node.get()) ? Kind::inner : Kind::other;
      findings.misses.push_back({{node->result()->name, std::move(best.reason)}, kind});
    }
  }
  return findings;
}

}  // namespace weft
