#include "passes/pattern_pass.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "ir/rank_groups.h"
#include "passes/profit.h"

namespace weft {
namespace {

// Returns why a rewrite is refused; see pattern_pass.
class KernelFilter {
 public:
  KernelFilter(const PassContext& context, const std::string& fusion)
      : context_(context), is_custom_(fusion == kCustomFusion) {
    const auto limits = rewrite_limits(context.patterns, context.options);
    if (const auto limit = limits.find(fusion); limit != limits.end()) left_ = limit->second;
  }

  std::optional<std::string> operator()(const Pattern& pattern, const PatternMatch& match,
                                        std::span<const PlannedCall> calls) {
    if (auto reason = named_by_user(pattern, calls)) return reason;
    if (auto reason = hides_a_cut(pattern, calls)) return reason;
    Profit profit;
    if (auto reason = has_no_kernel(pattern, calls, profit)) return reason;
    // The work model does not cover ops over ranks: their data does not go through memory alone, and later rewrites may
    // remove part of the exchange.
    const bool goes_over_ranks =
        std::any_of(calls.begin(), calls.end(), [](const PlannedCall& call) { return is_over_ranks(*call.op); });
    if (!goes_over_ranks) {
      profit.before = model_.of(match.nodes);
      profit.after = model_.of(calls);
    }
    // A custom fusion of the user is applied whatever it costs.
    if (profit.measured.empty() && !is_custom_ && profit.after.cycles > profit.before.cycles)
      return fmt::format(
          "it would take {} bytes and {:.0f} instructions at {} rows, where its parts take {} and {:.0f}",
          profit.after.bytes, profit.after.instructions, context_.range.hi, profit.before.bytes,
          profit.before.instructions);
    if (left_ == 0) return std::string(kHeldBack);
    --left_;
    if (goes_over_ranks) return std::nullopt;
    Profit& sum = profits_[pattern.name];
    sum.before += profit.before;
    sum.after += profit.after;
    sum.measured = profit.measured;
    return std::nullopt;
  }

  // The profit of the accepted rewrites, by pattern.
  const std::map<std::string, Profit>& profits() const { return profits_; }

 private:
  // Returns the reason when no kernel computes the fused op or when measurements show that its parts are faster. Sets
  // `profit.measured` when measurements show that the fused op is faster.
  std::optional<std::string> has_no_kernel(const Pattern& pattern, std::span<const PlannedCall> calls, Profit& profit) {
    for (const PlannedCall& call : calls) {
      const auto is_there = [&](const PatternNode& node) { return node.name == call.op->name; };
      const std::vector<PatternNode>& nodes = pattern.before.nodes;
      // The rewrite does not change who computes a part that stays.
      if (call.op->is_primitive() || std::any_of(nodes.begin(), nodes.end(), is_there)) continue;
      const Choice choice =
          selector_.select(call.op->name, {call.operands, call.results, call.attributes, context_.range});
      if (choice.provider != "native") {
        if (choice.is_tuned) profit.measured = choice.reason;
        continue;
      }
      if (choice.is_tuned) return choice.reason;
      std::string reason = "no kernel computes " + call.op->name;
      for (const Refusal& refusal : choice.refused) reason += fmt::format("; {}: {}", refusal.provider, refusal.reason);
      return reason;
    }
    return std::nullopt;
  }

  // The rewrite would drop a priority list that the user set for a part, unless the fused op has one too or the list
  // allows fusions.
  std::optional<std::string> named_by_user(const Pattern& pattern, std::span<const PlannedCall> calls) const {
    const auto& user = context_.priorities.user();
    for (const PlannedCall& call : calls)
      if (user.contains(call.op->name)) return std::nullopt;
    for (const PatternNode& node : pattern.before.nodes)
      if (!context_.priorities.may_be_fused(node.name))
        return fmt::format("--ir-op-priority.{} decides who computes it", node.name);
    return std::nullopt;
  }

  // Refuses a rewrite whose parts contain a splitting op, unless the new ops split the graph there too.
  std::optional<std::string> hides_a_cut(const Pattern& pattern, std::span<const PlannedCall> calls) const {
    for (const std::string& cut : context_.splitting_ops) {
      const auto is_cut = [&](const Op& op) { return op.name == cut || op.splits_as == cut; };
      const bool before = std::any_of(pattern.before.nodes.begin(), pattern.before.nodes.end(),
                                      [&](const PatternNode& node) { return is_cut(*node.op); });
      const bool after =
          std::any_of(calls.begin(), calls.end(), [&](const PlannedCall& call) { return is_cut(*call.op); });
      if (before && !after) return fmt::format("-cc.splitting_ops cuts the graph at {}", cut);
    }
    return std::nullopt;
  }

  const PassContext& context_;
  bool is_custom_;
  WorkModel model_{context_.ops, context_.device, context_.range.hi};
  std::map<std::string, Profit> profits_;
  std::int64_t left_ = -1;  // rewrites that may still be made; negative without a limit
  KernelSelector selector_{context_.kernels, context_.priorities, context_.batch_invariant};
};

std::string name_of(OptionalFlag CodeOptions::*member) {
  for (const OptionRow& row : option_table())
    if (row.member == OptionMember(member)) return "-" + std::string(row.name);
  return "";
}

}  // namespace

void PatternList::add(PatternDefinition definition) {
  Pattern pattern = std::move(definition).finish();
  for (const FusionPattern& known : into_)
    CHECK(known.pattern.name != pattern.name, "the pattern {} is defined twice", pattern.name);
  into_.push_back({fusion_, std::move(pattern), why_not_});
}

std::vector<FusionPattern> make_pattern_table(const OpTable& ops, DType fp8) {
  std::vector<FusionPattern> patterns;
  for (const PatternEntry& entry : pattern_table()) {
    PatternList list(entry.fusion, ops, fp8, patterns);
    entry.define(list);
  }
  return patterns;
}

std::vector<const Pattern*> patterns_named(std::span<const FusionPattern> patterns, const std::string& name,
                                           std::vector<std::string> others) {
  std::vector<const Pattern*> found;
  std::vector<std::string> known = std::move(others), fusions;
  for (const FusionPattern& entry : patterns) {
    known.insert(known.end(), {entry.fusion, entry.pattern.name});
    if (std::find(fusions.begin(), fusions.end(), entry.fusion) == fusions.end()) fusions.push_back(entry.fusion);
    if (name.empty() || entry.fusion == name || entry.pattern.name == name) found.push_back(&entry.pattern);
  }
  USER_CHECK(name.empty() || !found.empty(), "[pattern] there is no pattern and no fusion {}{}", quote(name),
             nearest(name, known) ? suggestion(name, known) : suggestion_or_all(name, fusions));
  return found;
}

std::pair<std::string, std::int64_t> parse_fusion_count(const std::string& text, const std::string& option,
                                                        const std::string& more) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::size_t equals = text.find('=');
  USER_CHECK(equals != std::string::npos, "[{}] wanted NAME=COUNT{}, but is {}", option, more, quote(text));
  const std::string name = text.substr(0, equals);
  const std::int64_t count = human_integer(text.substr(equals + 1), option);
  USER_CHECK(count >= 0 && count <= kMost, "[{}] {} must be in [0, {}], but is {}", option, name, kMost, count);
  return {name, count};
}

std::map<std::string, std::int64_t> rewrite_limits(std::span<const FusionPattern> patterns,
                                                   const CodeOptions& options) {
  std::map<std::string, std::int64_t> limits;
  for (const std::string& word : options.limit_rewrites) {
    const auto [name, count] = parse_fusion_count(word, "--limit-rewrites");
    std::vector<std::string> known;
    for (const FusionPattern& entry : patterns) known.push_back(entry.fusion);
    USER_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "[--limit-rewrites] there is no fusion {}{}",
               quote(name), suggestion(name, known));
    limits[name] = count;
  }
  return limits;
}

std::function<PassResult(Graph&, PassContext&)> pattern_pass(std::string fusion, OptionalFlag CodeOptions::*enabled) {
  return [fusion = std::move(fusion), enabled](Graph& graph, PassContext& context) {
    std::vector<const Pattern*> patterns;
    PassResult result;
    const bool is_off = enabled != nullptr && context.options.*enabled == false;
    for (const FusionPattern& entry : context.patterns) {
      if (entry.fusion != fusion) continue;
      std::optional<std::string> off;
      if (is_off) {
        off = name_of(enabled) + " is false";
      } else if (entry.why_not) {
        off = entry.why_not(context);
      }
      if (off) {
        result.patterns.push_back({.pattern = entry.pattern.name, .off = std::move(off)});
      } else {
        patterns.push_back(&entry.pattern);
      }
    }
    if (is_off) return result;
    std::int64_t visits = 0;
    KernelFilter filter(context, fusion);
    for (PatternReport& report : rewrite_all(graph, patterns, context.ops, std::ref(filter), &visits)) {
      if (const auto profit = filter.profits().find(report.pattern); profit != filter.profits().end())
        report.profit = profit->second;
      result.patterns.push_back(std::move(report));
    }
    int matched = 0;
    for (const PatternReport& report : result.patterns) matched += report.matched;
    result.counts = {{"fused", matched}, {"visits", static_cast<int>(visits)}};
    return result;
  };
}

}  // namespace weft
