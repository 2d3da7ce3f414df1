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
      const Choice choice =
          selector_.select(call.op->name, {call.operands, call.results, call.attributes, context_.range});
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
  KernelSelector selector_{context_.kernels, context_.priorities, context_.batch_invariant};
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

std::vector<FusionPattern> make_pattern_table(const OpTable& ops, DType fp8) {
  std::vector<FusionPattern> patterns;
  for (const PatternEntry& entry : pattern_table()) {
    PatternList list(entry.fusion, ops, fp8, patterns);
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

std::map<std::string, std::int64_t> rewrite_limits(std::span<const FusionPattern> patterns, const Options& options) {
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
