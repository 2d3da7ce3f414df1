// How providers are timed, with kernels of artificial time: only they advance the clock.

#include "compiler/tune/tune.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/eager.h"
#include "compiler/token_ranges.h"
#include "ir/parse.h"
#include "tests/test_context.h"

namespace weft::tune_test {

constexpr const char* kGraph = R"(
graph g(%x: f32[s0, 8], %y: f32[s0, 16]) stage=traced where s0 in [1, 64] {
  %a = abs(%x)
  %b = abs(%a)
  %c = abs(%y)
  %d = sqrt(%c)
  return %b, %d
}
)";

class TuneTest : public ::testing::Test {
 protected:
  TuneTest() {
    context_->priorities.add_defaults("abs", {"base"});
    add_kernel("base", [](std::int64_t, int) { return 1e-3; });
  }

  // The seconds of a call, by its rows and by how often the kernel ran before.
  void add_kernel(const std::string& provider, std::function<double(std::int64_t rows, int before)> seconds) {
    Kernel kernel = *context_->kernels.find("abs", "reference");
    kernel.provider = provider;
    kernel.run = [this, provider, seconds, run = kernel.run](const KernelCall& call) {
      run(call);
      timer_.at += seconds(call.operands[0].size[0], runs_[provider]++);
    };
    context_->kernels.add(std::move(kernel));
  }

  std::vector<CompileRecord> records() {
    const auto graph = parse_graph(kGraph, context_->ops);
    return compile_ranges(*graph, *context_, token_ranges(*graph, *context_, 64).ranges, {}).records;
  }
  TuneReport run(double budget = 1000) {
    return tune(*context_, records(), database_, {.budget_seconds = budget, .timer = &timer_, .now = 1234});
  }
  std::vector<std::string> chosen_for_abs(const Context& context) {
    const auto graph = parse_graph(kGraph, context.ops);
    const auto selected = selected_impls(compile(*graph, context, {1, 64}, {}).record);
    std::vector<std::string> chosen;
    for (const auto& [node, provider] : selected.at("abs")) chosen.push_back(provider);
    return chosen;
  }

  const std::shared_ptr<Context> context_ = test_context();
  TuningDatabase database_{.fingerprint = fingerprint_of(context_->device), .entries = {}};
  // Only the kernels advance it.
  struct : TuningTimer {
    double now() override { return at; }
    double at = 0;
  } timer_;
  std::map<std::string, int> runs_;
};

TEST_F(TuneTest, MeasuresEachDistinctCallThatSeveralProvidersTake) {
  add_kernel("rival", [](std::int64_t, int) { return 0.5e-3; });
  const TuneReport report = run();
  EXPECT_EQ(report.measured, 2) << "abs of two widths; the third is equal to the first";
  EXPECT_EQ(report.unrivalled, 1) << "sqrt";
  ASSERT_EQ(database_.entries.size(), 2u);
  const TuningEntry& entry = database_.entries.begin()->second;
  EXPECT_EQ(entry.standard, "base");
  EXPECT_EQ(entry.measured, 1234);
  EXPECT_EQ(entry.rows, (std::vector<std::int64_t>{1, 64}));
  ASSERT_EQ(entry.times.size(), 2u) << "neither reference nor a meaning";
  EXPECT_EQ(entry.times[0].nanoseconds, (std::vector<std::vector<std::int64_t>>(2, {1'000'000, 1'000'000, 1'000'000})));
  EXPECT_EQ(parse_tuning(database_.text(), "t").text(), database_.text());
}

TEST_F(TuneTest, ChoosesTheFasterProviderInEagerAndCompiledAlike) {
  add_kernel("rival", [](std::int64_t, int) { return 0.5e-3; });
  run();
  EXPECT_EQ(chosen_for_abs(*context_), (std::vector<std::string>{"base", "base", "base"})) << "not without being asked";
  apply_tuning(database_, context_->ops, context_->priorities);
  EXPECT_EQ(chosen_for_abs(*context_), (std::vector<std::string>{"rival", "rival", "rival"}));
  for (const std::int64_t rows : {1, 8, 16, 64}) {
    runs_.clear();
    EagerEvaluator eager(*context_, {1, 64});
    call("abs", {eager.value(Tensor::empty(Meta::tensor(DType::f32, {rows, 8})))}, {});
    EXPECT_EQ(runs_["rival"], 1) << rows;
    call("abs", {eager.value(Tensor::empty(Meta::tensor(DType::f32, {rows, 9})))}, {});
    EXPECT_EQ(runs_["base"], 1) << "a width that was not measured";
    EagerEvaluator other(*context_, {1, 32});
    call("abs", {other.value(Tensor::empty(Meta::tensor(DType::f32, {rows, 8})))}, {});
    EXPECT_EQ(runs_["base"], 2) << "a range that was not measured";
  }
}

TEST_F(TuneTest, SaysWhy) {
  add_kernel("rival", [](std::int64_t rows, int) { return rows == 1 ? 0.4e-3 : 0.7e-3; });
  run();
  apply_tuning(database_, context_->ops, context_->priorities);
  const auto graph = parse_graph(kGraph, context_->ops);
  const Compiled compiled = compile(*graph, *context_, {1, 64}, {});
  int found = 0;
  for (const PassRecord& pass : compiled.record.passes)
    for (const NodeChoice& node : pass.result.choices)
      if (node.op == "abs") {
        ++found;
        EXPECT_EQ(node.choice.reason, "tuned: 1.4x faster than base");
        EXPECT_TRUE(node.choice.refused.empty());
      }
  EXPECT_EQ(found, 3);
}

TEST_F(TuneTest, KeepsTheDefaultWhereTheRivalIsSlowAtOneEndOrInOneRound) {
  add_kernel("slow_for_many", [](std::int64_t rows, int) { return rows == 1 ? 0.1e-3 : 0.95e-3; });
  // 1 to wake up, then the rounds, one run each: the budget has room for no more.
  add_kernel("slow_once", [](std::int64_t, int before) { return before % 4 == 2 ? 0.95e-3 : 0.1e-3; });
  run(1e-3);
  ASSERT_EQ(database_.entries.size(), 1u);
  for (const auto& [key, decision] : decide(database_)) EXPECT_EQ(decision.provider, "base");
}

TEST_F(TuneTest, NeverOverrulesWhatTheUserNamed) {
  add_kernel("rival", [](std::int64_t, int) { return 0.1e-3; });
  add_kernel("wished", [](std::int64_t, int) { return 2e-3; });
  run();
  apply_tuning(database_, context_->ops, context_->priorities);
  for (const std::vector<std::string>& user :
       {std::vector<std::string>{"wished"}, {"base"}, {"base", "rival"}, {"native"}, {"wished", "native"}}) {
    context_->priorities.set("abs", user);
    EXPECT_EQ(chosen_for_abs(*context_), std::vector<std::string>(3, user[0]));
  }
  context_->kernels.add({.op = "abs",
                         .provider = "unwilling",
                         .supports = [](const KernelRequest&) { return Verdict::no("does not want to"); },
                         .run = [](const KernelCall&) {}});
  context_->priorities.set("abs", {"unwilling"});
  EXPECT_EQ(chosen_for_abs(*context_), std::vector<std::string>(3, "rival")) << "the default part is re-ordered";
}

TEST_F(TuneTest, AProviderThatDependsOnItsNeighboursStaysOutUnderBatchInvariance) {
  add_kernel("rival", [](std::int64_t, int) { return 0.1e-3; });
  Kernel kernel = *context_->kernels.find("abs", "rival");
  kernel.provider = "variant";
  kernel.batch_invariant = false;
  kernel.run = [this](const KernelCall&) { timer_.at += 1e-6; };
  context_->kernels.add(std::move(kernel));
  run();
  apply_tuning(database_, context_->ops, context_->priorities);
  EXPECT_EQ(chosen_for_abs(*context_), std::vector<std::string>(3, "variant"));
  context_->options.batch_invariant = true;
  EXPECT_EQ(chosen_for_abs(*context_), std::vector<std::string>(3, "base"));
}

TEST_F(TuneTest, MeasuresNothingTheSecondTime) {
  add_kernel("rival", [](std::int64_t, int) { return 0.5e-3; });
  run();
  runs_.clear();
  const std::string before = database_.text();
  const TuneReport report = run();
  EXPECT_EQ(report.measured, 0);
  EXPECT_EQ(report.known, 2);
  EXPECT_EQ(report.calls.size(), 2u);
  EXPECT_TRUE(runs_.empty());
  EXPECT_EQ(database_.text(), before);
}

TEST_F(TuneTest, EndsWithTheBudgetAndGoesOnNextTime) {
  add_kernel("rival", [](std::int64_t, int) { return 10.0; });
  const TuneReport first = run(1);
  EXPECT_EQ(first.measured, 1);
  EXPECT_EQ(first.left, 1);
  EXPECT_EQ(runs_["rival"], 2 * 4) << "at two sizes once to wake up and once a round";
  const TuneReport second = run(1);
  EXPECT_EQ(second.measured, 1);
  EXPECT_EQ(second.known, 1);
  EXPECT_EQ(second.left, 0);
}

TEST_F(TuneTest, MeasuresExactSizesApart) {
  add_kernel("rival", [](std::int64_t rows, int) { return rows == 3 ? 0.1e-3 : 2e-3; });
  context_->options.compile_sizes = {"3"};
  EXPECT_EQ(run().measured, 4);
  int rivals = 0;
  for (const auto& [key, decision] : decide(database_)) rivals += decision.provider == "rival" ? 1 : 0;
  EXPECT_EQ(rivals, 2);
}

}  // namespace weft::tune_test
