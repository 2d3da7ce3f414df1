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
  explicit KernelFilter(const PassContext& context) : context_(context) {}

  std::optional<std::string> operator()(const Pattern& pattern, std::span<const PlannedCall> calls) {
    if (auto reason = named_by_user(pattern, calls)) return reason;
    for (const PlannedCall& call : calls) {
      if (call.op->is_primitive()) continue;
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
    result.patterns = rewrite_all(graph, patterns, context.ops, KernelFilter(context), &visits);
    int matched = 0;
    for (const PatternReport& report : result.patterns) matched += report.matched;
    result.counts = {{"fused", matched}, {"visits", static_cast<int>(visits)}};
    return result;
  };
}

}  // namespace weft
