#include "compiler/pattern_proof.h"

#include <algorithm>

#include "base/error.h"
#include "base/rank_group.h"
#include "compiler/interpret.h"
#include "compiler/pattern_instance.h"
#include "compiler/sample_call.h"
#include "ir/pattern_rewrite.h"
#include "ir/rank_groups.h"

namespace weft {
namespace {

constexpr std::int64_t kMostRanksTried = 64;

std::string where(const Pattern& pattern, const PatternInstance& instance) {
  std::string text;
  for (std::size_t i = 0; i < pattern.wildcards.size(); ++i) {
    const Wildcard& wildcard = pattern.wildcards[i];
    if (wildcard.kind == WildcardKind::value) {
      text += fmt::format(" ?{}: {}", wildcard.name,
                          instance.values[i].defined() ? instance.values[i].meta.text() : "none");
    } else if (instance.bound.attributes[i]) {
      text += fmt::format(" ?{}={}", wildcard.name, instance.bound.attributes[i]->text());
    }
  }
  return text;
}

using Groups = std::map<std::string, std::int64_t>;

// The groups that the two graphs need, by name. Returns nullopt if they differ in size, because here all ranks are in
// all groups, or if they have too many ranks.
std::optional<Groups> groups_of(const Graph& before, const Graph& after) {
  Groups groups;
  try {
    groups = rank_groups(before);
    groups.merge(rank_groups(after));
  } catch (const UserError&) {
    return std::nullopt;  // one group has two sizes
  }
  for (const auto& [name, size] : groups)
    if (size != groups.begin()->second || size > kMostRanksTried) return std::nullopt;
  return groups;
}

// By wildcard: whether an op over ranks in `before` takes it, so that its value must differ between ranks.
std::vector<bool> differing_values(const Pattern& pattern) {
  std::vector<bool> differs(pattern.wildcards.size());
  for (const PatternNode& node : pattern.before.nodes)
    for (const PatternOperand& operand : node.operands)
      if (is_over_ranks(*node.op) && operand.wildcard >= 0) differs[static_cast<std::size_t>(operand.wildcard)] = true;
  return differs;
}

// The tensor of one rank: the same elements, rotated by a different distance for each rank.
Tensor of_rank(const Tensor& tensor, int rank) {
  Tensor own = contiguous(tensor);
  const std::int64_t bytes = own.meta.bytes().number();
  const std::int64_t count = std::max<std::int64_t>(element_count(own.meta.shape).number(), 1);
  constexpr std::int64_t kStep = 37;  // no sample's width is a multiple of it
  const std::int64_t shift = rank * kStep % count * bytes_of(own.meta.dtype, 2) / 2 % std::max<std::int64_t>(bytes, 1);
  Tensor shifted = Tensor::empty(own.meta);
  std::rotate_copy(own.data(), own.data() + shift, own.data() + bytes, shifted.data());
  return shifted;
}

// The two graphs of one sample.
struct Sides {
  const Pattern& pattern;
  std::shared_ptr<Graph> before, after;
  bool exact = false;

  // Describes how the results differ on these inputs; "" if they are equal.
  std::string difference_on(Interpreter& interpreter, const std::vector<Tensor>& inputs) const {
    const Values wanted = run_graph(*before, interpreter, values_of(interpreter, inputs));
    const Values came = run_graph(*after, interpreter, values_of(interpreter, inputs));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const PatternNode& giver = pattern.before.nodes[static_cast<std::size_t>(pattern.before.results[i].node)];
      const std::string text =
          difference(wanted[i].tensor(), came[i].tensor(), giver.op->tolerance(wanted[i].dtype()), exact);
      if (!text.empty()) return fmt::format("result {} of after: {}", i, text);
    }
    return "";
  }
};

// Compares the graphs on every rank. If several ranks differ, returns the difference on the lowest one.
std::string difference_on_ranks(const Sides& sides, const PatternInstance& instance, const Context& context,
                                const Groups& groups) {
  const std::vector<bool> differs = differing_values(sides.pattern);
  const auto ranks = static_cast<int>(groups.begin()->second);
  std::vector<std::string> names, differences(static_cast<std::size_t>(ranks));
  for (const auto& [name, size] : groups) names.push_back(name);
  run_ranks(ranks, names, [&](int rank, const RankGroups& own) {
    ThreadPool threads(1);
    Interpreter interpreter(context, threads, own);
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < instance.values.size(); ++i)
      if (instance.values[i].defined())
        inputs.push_back(differs[i] ? of_rank(instance.values[i], rank) : instance.values[i]);
    differences[static_cast<std::size_t>(rank)] = sides.difference_on(interpreter, inputs);
  });
  for (int rank = 0; rank < ranks; ++rank)
    if (const std::string& text = differences[static_cast<std::size_t>(rank)]; !text.empty())
      return fmt::format("{} (rank {} of {})", text, rank, ranks);
  return "";
}

// Returns "" if the rewrite is right on the sample, the reason if it is not, and nullopt if the sample cannot test the
// pattern.
std::optional<std::string> failure_on(const Pattern& pattern, const PatternInstance& instance, const Context& context,
                                      bool exact) {
  const std::shared_ptr<Graph> before = graph_of(pattern, instance, context.ops);
  const std::size_t found = find_pattern(*before, pattern).matches.size();
  if (found == 0) return std::nullopt;
  if (found > 1) return fmt::format("before is found {} times in itself", found);
  const std::shared_ptr<Graph> after = before->clone();
  const Pattern* const patterns[] = {&pattern};
  const PatternReport report = rewrite_all(*after, patterns, context.ops)[0];
  const auto groups = groups_of(*before, *after);
  if (!groups) return std::nullopt;
  if (report.matched != 1) {
    // If the ranks cannot share these rows, the rewrite does not apply.
    if (!groups->empty()) return std::nullopt;
    return report.near_misses.at(0).reason;
  }
  const Sides sides{pattern, before, after, exact};
  if (!groups->empty()) return difference_on_ranks(sides, instance, context, *groups);
  Interpreter interpreter(context);
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : instance.values)
    if (tensor.defined()) tensors.push_back(tensor);
  return sides.difference_on(interpreter, tensors);
}

}  // namespace

std::vector<std::shared_ptr<Graph>> sample_graphs(const Pattern& pattern, const Context& context) {
  std::vector<std::shared_ptr<Graph>> graphs;
  for (const PatternInstance& instance : pattern_instances(pattern, context.ops))
    graphs.push_back(graph_of(pattern, instance, context.ops));
  return graphs;
}

PatternProof prove_pattern(const Pattern& pattern, const Context& context, bool exact) {
  PatternProof proof;
  for (const PatternInstance& instance : pattern_instances(pattern, context.ops)) {
    const auto failure = failure_on(pattern, instance, context, exact);
    if (!failure) continue;
    ++proof.samples;
    if (failure->empty()) continue;
    proof.failure = fmt::format("{}, with{}", *failure, where(pattern, instance));
    return proof;
  }
  if (proof.samples == 0) proof.failure = "no sample of its ops fits it, so that it cannot be proved";
  return proof;
}

}  // namespace weft
