// Both sides of every pattern, compiled, on samples: they have the bits of their meanings, and of each other.

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "compiler/check/pattern_instance.h"
#include "ir/pattern_rewrite.h"
#include "ir/print.h"
#include "ir/rank_groups.h"
#include "tests/compiled_graph.h"
#include "tests/test_context.h"

namespace weft::compiled_patterns_test {

constexpr TokenRange kRange = {1, 8};
constexpr std::int64_t kMostRanks = 4;

// One sample of a pattern: `before` unchanged, and rewritten. Null if the sample is not one of the pattern, or if a few
// ranks cannot run it.
struct Sides {
  std::shared_ptr<Graph> before, after;
  std::vector<Tensor> inputs;

  Sides(const Pattern& pattern, const PatternInstance& instance, const Context& context) {
    auto graph = graph_of(pattern, instance, context.ops);
    for (const auto& input : graph->inputs()) input->donated = input->meta.kind == MetaKind::kv;
    if (find_pattern(*graph, pattern).matches.size() != 1) return;
    for (const auto& [name, size] : rank_groups(*graph))
      if (size > kMostRanks || rank_groups(*graph).size() > 1) return;
    auto rewritten = graph->clone();
    const Pattern* const patterns[] = {&pattern};
    if (rewrite_all(*rewritten, patterns, context.ops)[0].matched != 1) return;
    before = std::move(graph);
    after = std::move(rewritten);
    for (const Tensor& tensor : instance.values)
      if (tensor.defined()) inputs.push_back(tensor);
  }
};

// Whether it ran.
bool run(const Sides& sides, const Context& context) {
  if (sides.before == nullptr) return false;
  PassRunnerOptions as_it_is;
  as_it_is.fuse = false;
  EXPECT_EQ(compiled_difference(*sides.before, context, kRange, sides.inputs, as_it_is), "") << display(*sides.before);
  EXPECT_EQ(compiled_difference(*sides.after, context, kRange, sides.inputs, as_it_is), "") << display(*sides.after);
  if (!rank_groups(*sides.before).empty() || !sums_in_free_order(*sides.before)) return true;  // they have one meaning
  EXPECT_EQ(first_difference(*sides.before, run_compiled(*sides.before, context, kRange, sides.inputs, as_it_is),
                             run_compiled(*sides.after, context, kRange, sides.inputs, as_it_is)),
            "")
      << display(*sides.after);
  return true;
}

// The first `most` samples of every pattern.
void run_every_pattern(const Context& context, int most) {
  int samples = 0;
  for (const FusionPattern& entry : context.patterns) {
    SCOPED_TRACE(entry.pattern.name);
    int ran = 0;
    for (const PatternInstance& instance : pattern_instances(entry.pattern, context.ops)) {
      if (ran == most) break;
      ran += run(Sides(entry.pattern, instance, context), context) ? 1 : 0;
    }
    EXPECT_GT(ran, 0);
    samples += ran;
  }
  std::printf("count: %zu patterns compiled on %d samples\n", context.patterns.size(), samples);
}

TEST(CompiledPatterns, GiveTheBitsOfTheirMeaning) { run_every_pattern(*test_context(), 1); }

TEST(CompiledPatterns, GiveTheBitsOfTheirMeaningInKernelsAlone) { run_every_pattern(*kernel_context(), 4); }

}  // namespace weft::compiled_patterns_test
