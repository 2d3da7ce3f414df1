#include "passes/pattern_pass.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

// Says why a rewrite is not wanted; see pattern_pass.
class KernelFilter {
 public:
  KernelFilter(const PassContext& context, const std::string& fusion) : context_(context) {
    const auto limits = rewrite_limits(context.patterns, context.options);
    if (const auto limit = limits.find(fusion); limit != limits.end()) left_ = limit->second;
  }

  std::optional<std::string> operator()(const Pattern& pattern, std::span<const PlannedCall> calls) {
    if (auto reason = named_by_user(pattern, calls)) return reason;
    for (const PlannedCall& call : calls) {
      const auto is_there = [&](const PatternNode& node) { return node.name == call.op->name; };
      const std::vector<PatternNode>& nodes = pattern.before.nodes;
      // Who computes a part that stays is no matter of the rewrite.
      if (call.op->is_primitive() || std::any_of(nodes.begin(), nodes.end(), is_there)) continue;
      const auto [known, is_new] = candidates_.try_emplace(call.op->name);
      if (is_new)
        known->second = list_candidates(context_.kernels, context_.priorities, call.op->name, context_.batch_invariant);
      const Choice choice =
          select_kernel(known->second, {call.operands, call.results, call.attributes, context_.range});
      if (choice.provider != "native") continue;
      std::string reason = "no kernel computes " + call.op->name;
      for (const Refusal& refusal : choice.refused) reason += fmt::format("; {}: {}", refusal.provider, refusal.reason);
      return reason;
    }
    if (left_ == 0) return std::string(kHeldBack);
    --left_;
    return std::nullopt;
  }

 private:
  // A list that the user gave for a part would be lost, unless there is one for the whole too.
  std::optional<std::string> named_by_user(const Pattern& pattern, std::span<const PlannedCall> calls) const {
    const auto& user = context_.priorities.user();
    for (const PlannedCall& call : calls)
      if (user.contains(call.op->name)) return std::nullopt;
    for (const PatternNode& node : pattern.before.nodes)
      if (user.contains(node.name)) return fmt::format("--ir-op-priority.{} says who computes it", node.name);
    return std::nullopt;
  }

  const PassContext& context_;
  std::int64_t left_ = -1;  // rewrites that may still be made; negative without a limit
  std::map<std::string, std::vector<Candidate>> candidates_;
};

std::string name_of(OptionalFlag Options::*member) {
  for (const OptionRow& row : option_table())
    if (row.member == OptionMember(member)) return "-" + std::string(row.name);
  return "";
}

}  // namespace

void PatternList::add(PatternDefinition definition) {
  Pattern pattern = std::move(definition).finish();
  for (const FusionPattern& known : into_)
    CHECK(known.pattern.name != pattern.name, "the pattern {} is defined twice", pattern.name);
  into_.push_back({fusion_, std::move(pattern)});
}

std::vector<FusionPattern> make_pattern_table(const OpTable& ops) {
  std::vector<FusionPattern> patterns;
  for (const PatternEntry& entry : pattern_table()) {
    PatternList list(entry.fusion, ops, patterns);
    entry.define(list);
  }
  return patterns;
}

std::vector<const Pattern*> patterns_named(std::span<const FusionPattern> patterns, const std::string& name) {
  std::vector<const Pattern*> found;
  std::vector<std::string> known;
  for (const FusionPattern& entry : patterns) {
    known.insert(known.end(), {entry.fusion, entry.pattern.name});
    if (name.empty() || entry.fusion == name || entry.pattern.name == name) found.push_back(&entry.pattern);
  }
  USER_CHECK(name.empty() || !found.empty(), "[pattern] there is no pattern and no fusion {}{}", quote(name),
             suggestion(name, known));
  return found;
}

std::map<std::string, std::int64_t> rewrite_limits(std::span<const FusionPattern> patterns, const Options& options) {
  std::map<std::string, std::int64_t> limits;
  for (const std::string& word : options.limit_rewrites) {
    const std::size_t equals = word.find('=');
    USER_CHECK(equals != std::string::npos, "[--limit-rewrites] wanted FUSION=COUNT, but is {}", quote(word));
    const std::string name = word.substr(0, equals);
    const std::int64_t count = human_integer(word.substr(equals + 1), "--limit-rewrites");
    USER_CHECK(count >= 0, "[--limit-rewrites] {} must be at least 0, but is {}", name, count);
    const bool is_fusion =
        std::any_of(patterns.begin(), patterns.end(), [&](const FusionPattern& entry) { return entry.fusion == name; });
    std::vector<std::string> known;
    for (const FusionPattern& entry : patterns) known.push_back(entry.fusion);
    USER_CHECK(is_fusion, "[--limit-rewrites] there is no fusion {}{}", quote(name), suggestion(name, known));
    limits[name] = count;
  }
  return limits;
}

std::function<PassResult(Graph&, PassContext&)> pattern_pass(std::string fusion, OptionalFlag Options::*enabled) {
  return [fusion = std::move(fusion), enabled](Graph& graph, PassContext& context) {
    std::vector<const Pattern*> patterns;
    for (const FusionPattern& entry : context.patterns)
      if (entry.fusion == fusion) patterns.push_back(&entry.pattern);
    PassResult result;
    if (enabled != nullptr && context.options.*enabled == false) {
      for (const Pattern* pattern : patterns)
        result.patterns.push_back({.pattern = pattern->name, .off = name_of(enabled) + " is false"});
      return result;
    }
    std::int64_t visits = 0;
    result.patterns = rewrite_all(graph, patterns, context.ops, KernelFilter(context, fusion), &visits);
    int matched = 0;
    for (const PatternReport& report : result.patterns) matched += report.matched;
    result.counts = {{"fused", matched}, {"visits", static_cast<int>(visits)}};
    return result;
  };
}

}  // namespace weft
