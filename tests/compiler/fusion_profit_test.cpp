// Fusions are measured: a fused kernel that is slower than its parts is not used where it is slower.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "compiler/token_ranges.h"
#include "compiler/tune/tune.h"
#include "ir/parse.h"
#include "ops/div_scalar.h"
#include "tests/test_context.h"

namespace weft::fusion_profit_test {

constexpr const char* kFused = "silu_and_mul_per_token_group_quant_int8";
constexpr const char* kGraph = R"(
graph g(%x: f32[s0, 128]) stage=traced where s0 in [1, 512] {
  %y = silu_and_mul(%x)
  %q, %s = per_token_group_quant_int8(%y, group_size=32)
  return %q, %s
}
)";

class FusionProfit : public testing::Test {
 protected:
  FusionProfit() {
    context_->options.compile_ranges_split_points = {64};
    // Without the program's own kernel for it, whose time no test sets.
    KernelRegistry others;
    context_->kernels.for_each([&](const Kernel& kernel) {
      const bool is_refused = context_->kernels.find(kernel.op, kernel.provider) == nullptr;
      if (!is_refused && (kernel.op != kFused || kernel.provider != "cpu")) others.add(kernel);
    });
    context_->kernels = std::move(others);
    add_kernel("silu_and_mul", [](std::int64_t) { return 1e-3; });
    add_kernel("per_token_group_quant_int8", [](std::int64_t) { return 1e-3; });
  }

  // A kernel with the highest priority that does nothing for a given time.
  void add_kernel(const std::string& op, std::function<double(std::int64_t rows)> seconds) {
    context_->kernels.add({.op = op, .provider = "seeded", .run = [this, seconds](const KernelCall& call) {
                             timer_.at += seconds(call.operands[0].size[0]);
                           }});
    context_->priorities.add_defaults(op, {"seeded"});
  }

  std::vector<CompileRecord> compiled() {
    const auto graph = parse_graph(kGraph, context_->ops);
    return compile_ranges(*graph, *context_, token_ranges(*graph, *context_, 512).ranges, {}).records;
  }

  // By the begin of the range: "fused", or the reason why not.
  std::map<std::int64_t, std::string> outcomes() {
    std::map<std::int64_t, std::string> found;
    for (const CompileRecord& record : compiled())
      for (const PassRecord& pass : record.passes)
        for (const PatternReport& report : pass.result.patterns) {
          if (report.pattern != kFused) continue;
          found[record.range.lo] = report.matched == 1 ? "fused" : report.near_misses.at(0).reason;
          if (report.profit) measured_[record.range.lo] = report.profit->measured;
        }
    return found;
  }

  void tune() {
    TuningDatabase database{.fingerprint = fingerprint_of(context_->device), .entries = {}};
    const std::vector<CompileRecord> records = compiled();
    weft::tune(*context_, records, database, {.budget_seconds = 1000, .timer = &timer_});
    apply_tuning(parse_tuning(database.text(), "database"), context_->ops, context_->priorities);
  }

  const std::shared_ptr<Context> context_ = test_context();
  // Only the kernels advance it.
  struct : TuningTimer {
    double now() override { return at; }
    double at = 0;
  } timer_;
  std::map<std::int64_t, std::string> measured_;
};

TEST_F(FusionProfit, IsAssumedWhereNobodyMeasured) {
  add_kernel(kFused, [](std::int64_t) { return 10e-3; });
  EXPECT_EQ(outcomes(), (std::map<std::int64_t, std::string>{{1, "fused"}, {65, "fused"}}));
  EXPECT_EQ(measured_[1], "");
}

TEST_F(FusionProfit, IsDeclinedWhereTheFusedKernelIsSlower) {
  add_kernel(kFused, [](std::int64_t) { return 3e-3; });
  tune();
  const std::string reason = "tuned: its parts are 1.5x faster than seeded";
  EXPECT_EQ(outcomes(), (std::map<std::int64_t, std::string>{{1, reason}, {65, reason}}));
}

TEST_F(FusionProfit, IsDeclinedInTheRangesAloneWhereItLoses) {
  add_kernel(kFused, [](std::int64_t rows) { return rows > 64 ? 5e-3 : 1e-3; });
  tune();
  EXPECT_EQ(outcomes(),
            (std::map<std::int64_t, std::string>{{1, "fused"}, {65, "tuned: its parts are 2.5x faster than seeded"}}));
  EXPECT_EQ(measured_[1], "tuned: 2.00x as fast as its parts");
}

TEST_F(FusionProfit, IsKeptWhereItDependsOnTheSizeWithinARange) {
  context_->options.compile_ranges_split_points = {};
  add_kernel(kFused, [](std::int64_t rows) { return rows > 64 ? 5e-3 : 1e-3; });
  tune();
  EXPECT_EQ(outcomes(), (std::map<std::int64_t, std::string>{{1, "fused"}}));
  EXPECT_EQ(measured_[1], "tuned: its parts are not 10 % faster in every round");
}

TEST_F(FusionProfit, IsWhatTheFusedKernelDoesNotMove) {
  add_kernel(kFused, [](std::int64_t) { return 1e-3; });
  int ranges = 0;
  for (const CompileRecord& record : compiled())
    for (const PassRecord& pass : record.passes)
      for (const PatternReport& report : pass.result.patterns) {
        if (report.matched == 0) continue;
        ++ranges;
        ASSERT_TRUE(report.profit);
        const std::int64_t rows = record.range.hi, codes = 64 + 2 * 4;
        const Work &before = report.profit->before, &after = report.profit->after;
        EXPECT_EQ(after.bytes, rows * (128 * 4 + codes));
        EXPECT_EQ(before.bytes - after.bytes, rows * 2 * 64 * 4);
        EXPECT_EQ(before.instructions, after.instructions) << "a fused op means its parts";
      }
  EXPECT_EQ(ranges, 2);
}

// The same bytes, and eleven divisions for one change of sign.
TEST(FusionProfitModel, DeclinesWhatWouldComputeMoreThanItsPartsMove) {
  Registrations mine("the test's own");
  mine.register_op("negated_slowly", [](OpDefinition& op) {
    op.schema("negated_slowly(Tensor x) -> Tensor");
    op.means([](Evaluator&, const Values& v, const Attributes&) {
      Value x = v[0];
      for (int i = 0; i < 11; ++i) x = div_scalar(x, -1.0);
      return Values{x};
    });
    op.sample({{"x", {2, 64}}});
  });
  mine.register_impl("negated_slowly", "mine", [](const KernelCall&) {});
  mine.register_priority("negated_slowly", {"mine"});
  mine.register_patterns(
      "pattern slow(?x) {\n  before {\n    %y = neg(?x)\n    return %y\n  }\n  after {\n"
      "    %y = negated_slowly(?x)\n    return %y\n  }\n}\n");
  Options options;
  options.cpu_features = "baseline";
  const auto context = make_context(std::move(options), std::move(mine));
  const auto outcome = [&](const std::string& fusion) {
    context->patterns.back().fusion = fusion;
    const auto graph = parse_graph(
        "graph g(%x: f32[s0, 64]) stage=traced where s0 in [1, 8] {\n  %y = neg(%x)\n  return %y\n}\n", context->ops);
    const auto compiled = compile_ranges(*graph, *context, token_ranges(*graph, *context, 8).ranges, {});
    for (const PassRecord& pass : compiled.records.at(0).passes)
      for (const PatternReport& report : pass.result.patterns)
        if (report.pattern == "slow") return report.matched == 1 ? "fused" : report.near_misses.at(0).reason;
    return std::string("nobody looked");
  };
  EXPECT_EQ(outcome("custom"), "fused") << "what a user brings is wanted";
  // 8 rows of 64 floats, read and written; of their 128 vectors each takes 1 or 11 * 6.
  EXPECT_EQ(outcome("act_quant"),
            "it would take 4096 bytes and 8448 instructions at 8 rows, where its parts take 4096 and 128");
}

}  // namespace weft::fusion_profit_test
