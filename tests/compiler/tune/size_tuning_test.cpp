// Measurements at exact sizes, and their effects.

#include "compiler/tune/size_tuning.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "compiler/store/plan_store.h"
#include "compiler/token_ranges.h"
#include "compiler/tune/tune_functions.h"
#include "ir/parse.h"
#include "runtime/replay.h"
#include "tests/base/temporary_folder.h"
#include "tests/compiler/tune/table_timer.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::size_tuning_test {

// A separate generated function, and a call that kernels compute.
constexpr const char* kGraph = R"(
graph g(%x: f32[s0, 512], %w: f32[256, 256]) stage=traced where s0 in [1, 64] {
  %y = silu_and_mul(%x)
  %z = linear(%y, %w)
  return %z
}
)";

bool is_function(const TimedRun& run) { return run.what.starts_with("rows_"); }

class SizeTuningTest : public testing::Test {
 protected:
  std::shared_ptr<Context> open(std::int64_t budget = 1000, const std::vector<std::string>& sizes = {"3", "8"}) {
    auto context = test_context();
    context->options.tuning_budget = budget;
    context->options.compile_sizes = sizes;
    context->tuning_timer = timer_;
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = folder_ / "cache", .warn = {}});
    // As fast as the program's own kernel until a test sets its time.
    Kernel rival = *context->kernels.find("linear", "cpu");
    rival.provider = "rival";
    context->kernels.add(std::move(rival));
    return context;
  }
  static std::vector<TokenRange> ranges(const Context& context) {
    return token_ranges(*graph(context), context, 64).ranges;
  }
  static std::shared_ptr<Graph> graph(const Context& context) { return parse_graph(kGraph, context.ops); }
  static bool tune(Context& context) { return tune_sizes(*graph(context), context, ranges(context)); }
  static CompiledRanges compiled(const Context& context) {
    return find_or_compile(*graph(context), context, ranges(context), {});
  }
  static std::string provider_of(const CompileRecord& record, const std::string& op) {
    return selected_impls(record).at(op).begin()->second;
  }
  // The kernel of the function that is in it.
  static std::string function_of(const Plan& plan) {
    for (const PlanStep& step : plan.steps)
      if (step.op.starts_with("rows_")) return step.op;
    return "";
  }
  static std::vector<float> result_of(const std::shared_ptr<const Plan>& plan, const Context& context,
                                      std::int64_t rows) {
    Tensor x = Tensor::empty(Meta::tensor(DType::f32, {rows, 512})),
           w = Tensor::empty(Meta::tensor(DType::f32, {256, 256}));
    for (std::int64_t i = 0; i < rows * 512; ++i) x.as<float>()[i] = static_cast<float>(i % 17 - 8) / 8;
    for (std::int64_t i = 0; i < 256 * 256; ++i) w.as<float>()[i] = static_cast<float>(i % 13 - 6) / 32;
    Replay replay(plan, *context.threads);
    replay.bind(0, x);
    replay.bind(1, w);
    replay.run();
    const Tensor result = replay.result(0);
    std::vector<float> values(static_cast<std::size_t>(rows) * 256);
    std::memcpy(values.data(), result.data(), values.size() * sizeof(float));
    return values;
  }

  TemporaryFolder folder_;
  std::shared_ptr<TableTimer> timer_ = std::make_shared<TableTimer>();
};

TEST_F(SizeTuningTest, IsOffWithoutABudgetOrAnExactSize) {
  const auto without_budget = open(0), without_sizes = open(10, {});
  EXPECT_FALSE(tune(*without_budget));
  EXPECT_FALSE(tune(*without_sizes));
  const auto stopped = open();
  stopped->options.compile_to = "lowered";
  EXPECT_FALSE(tune(*stopped));
  EXPECT_EQ(timer_->runs, 0);
  EXPECT_EQ(without_budget->size_tuning.budget, 0);
  EXPECT_EQ(without_budget->first_time_work->counts(FirstTime::tune).before_ready, 0);
}

TEST_F(SizeTuningTest, TimesAtTheSizesAndNowhereElse) {
  const auto context = open();
  EXPECT_TRUE(tune(*context));
  EXPECT_EQ(timer_->sizes, (std::set<std::int64_t>{3, 8}));
  EXPECT_TRUE(timer_->timed.contains("linear@rival"));
  EXPECT_TRUE(timer_->timed.contains("linear@cpu"));
  for (const auto& [key, entry] : context->size_tuning.measured.entries)
    EXPECT_EQ(entry.rows, std::vector<std::int64_t>{entry.call.range.lo}) << key;
  EXPECT_GT(context->first_time_work->counts(FirstTime::tune).before_ready, 0);
}

TEST_F(SizeTuningTest, ChoosesTheFasterProviderAtThatSizeAlone) {
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" && run.rows == 8 ? 12.3e-6 : 15.1e-6; };
  const auto context = open();
  tune(*context);
  const CompiledRanges all = compiled(*context);
  ASSERT_EQ(all.records.size(), 3u);
  EXPECT_EQ(provider_of(all.records[0], "linear"), "cpu");
  EXPECT_EQ(provider_of(all.records[1], "linear"), "rival");
  EXPECT_EQ(provider_of(all.records[2], "linear"), "cpu");
  for (const PassRecord& pass : all.records[1].passes)
    for (const NodeChoice& node : pass.result.choices)
      EXPECT_TRUE(node.op != "linear" || node.choice.reason == "tuned: 12.3 us against 15.1 us of cpu")
          << node.choice.reason;
  EXPECT_EQ(all.plans[0], all.plans[2]);
  EXPECT_NE(all.plans[1], all.plans[2]);
}

TEST_F(SizeTuningTest, TriesGeneratedCodeBesideAKernel) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  timer_->table = [](const TimedRun& run) { return run.contender == "native" && run.rows == 8 ? 1e-6 : 2e-6; };
  const auto context = open();
  Kernel seeded = *context->kernels.find("silu_and_mul", "cpu");
  seeded.provider = "seeded";
  seeded.yields = [](const KernelRequest&) { return false; };
  context->kernels.add(std::move(seeded));
  context->priorities.add_defaults("silu_and_mul", {"seeded"});
  tune(*context);
  EXPECT_TRUE(timer_->timed.contains("silu_and_mul@native"));
  EXPECT_TRUE(context->priorities.user().empty()) << "as it was";
  const CompiledRanges all = compiled(*context);
  EXPECT_EQ(provider_of(all.records[0], "silu_and_mul"), "seeded");
  EXPECT_EQ(provider_of(all.records[1], "silu_and_mul"), "native");
  EXPECT_EQ(provider_of(all.records[2], "silu_and_mul"), "seeded");
  EXPECT_EQ(result_of(all.plans[1], *context, 8), result_of(all.plans[2], *context, 8));
}

TEST_F(SizeTuningTest, SharesOnePlanWhereNothingIsFaster) {
  const auto context = open();
  tune(*context);
  EXPECT_GT(timer_->runs, 0);
  const CompiledRanges all = compiled(*context);
  EXPECT_EQ(all.plans[0], all.plans[2]);
  EXPECT_EQ(all.plans[1], all.plans[2]);
  EXPECT_EQ(all.records[0].plan, all.records[2].plan);
  EXPECT_EQ(all.plans[0]->bounds.at("s0"), (Interval{1, 64}));
}

TEST_F(SizeTuningTest, CutsAFunctionAsItIsFastestAndGivesTheSameBits) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  timer_->table = [](const TimedRun& run) {
    if (!is_function(run)) return 1e-3;
    if (run.rows == 8) return run.contender == "unroll=2 chunks=2" ? 1e-6 : run.contender == "unroll=2" ? 2e-6 : 3e-6;
    return 3e-6;
  };
  const auto context = open();
  tune(*context);
  const CompiledRanges all = compiled(*context);
  EXPECT_EQ(all.plans[0], all.plans[2]) << "as by default";
  ASSERT_NE(all.plans[1], all.plans[2]);
  const std::string here = function_of(*all.plans[1]), there = function_of(*all.plans[2]);
  EXPECT_NE(here, there);
  EXPECT_EQ(context->size_tuning.functions_at({8, 8}).at(there), (RowTuning{.unroll = 2, .chunks = 2}));
  EXPECT_EQ(context->generated->object(here).function.chunks, 2);
  EXPECT_TRUE(context->size_tuning.functions_at({3, 3}).empty());
  EXPECT_TRUE(context->size_tuning.functions_at({1, 64}).empty());
  EXPECT_EQ(result_of(all.plans[1], *context, 8), result_of(all.plans[2], *context, 8));
  EXPECT_EQ(context->generated->size(), 2u) << "of what was timed nothing else is kept";
}

TEST_F(SizeTuningTest, SharesOnePlanBetweenSizesThatAreCutAlike) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  timer_->table = [](const TimedRun& run) { return run.contender == "unroll=2" ? 1e-6 : 3e-6; };
  const auto context = open();
  tune(*context);
  const CompiledRanges all = compiled(*context);
  EXPECT_EQ(all.plans[0], all.plans[1]);
  EXPECT_NE(all.plans[1], all.plans[2]);
  EXPECT_EQ(all.plans[0]->bounds.at("s0"), (Interval{3, 8}));
}

TEST_F(SizeTuningTest, EndsWithTheBudgetAndLeavesTheRestAsByDefault) {
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" ? 0.5 : 1.0; };
  const auto context = open(1);
  tune(*context);
  const SizeTuning& tuning = context->size_tuning;
  EXPECT_EQ(tuning.measured.entries.size(), 1u) << "what was begun within the budget";
  EXPECT_GE(tuning.left, 1);
  const CompiledRanges all = compiled(*context);
  int rivals = 0;
  for (const CompileRecord& record : all.records) rivals += provider_of(record, "linear") == "rival" ? 1 : 0;
  EXPECT_EQ(rivals, 1);
}

TEST_F(SizeTuningTest, ASecondStartMeasuresNothing) {
  timer_->table = [](const TimedRun& run) {
    return run.contender == "rival" || run.contender == "unroll=4" ? 1e-6 : 3e-6;
  };
  const auto first = open();
  tune(*first);
  const CompiledRanges wanted = compiled(*first);
  timer_->runs = 0;
  const auto second = open();
  EXPECT_TRUE(tune(*second));
  EXPECT_EQ(timer_->runs, 0);
  EXPECT_EQ(second->first_time_work->counts(FirstTime::tune).before_ready, 0);
  EXPECT_TRUE(second->size_tuning.was_found);
  EXPECT_EQ(second->size_tuning.measured.text(), first->size_tuning.measured.text());
  EXPECT_EQ(second->size_tuning.functions, first->size_tuning.functions);
  const CompiledRanges found = compiled(*second);
  EXPECT_EQ(plan_text(*found.plans[0]), plan_text(*wanted.plans[0]));
  // Another budget has another key.
  const auto other = open(999);
  tune(*other);
  EXPECT_GT(timer_->runs, 0);
}

TEST_F(SizeTuningTest, StoredPlansKeepWhatTheyWereTunedBy) {
  timer_->table = [](const TimedRun& run) {
    return run.contender == "rival" || run.contender == "unroll=4" ? 1e-6 : 3e-6;
  };
  const auto first = open();
  tune(*first);
  // Kernels of providers that are not of this program cannot be kept.
  const auto stored_of = [&](const Context& context, const CompiledRanges& all) {
    std::vector<const Plan*> plans;
    for (const auto& plan : all.plans) plans.push_back(plan.get());
    return store_plans(*graph(context), context, ranges(context), plans);
  };
  EXPECT_THROW(stored_of(*first, compiled(*first)), UserError);
  timer_->table = [](const TimedRun& run) { return run.contender == "unroll=4" ? 1e-6 : 3e-6; };
  const auto second = open(999);
  tune(*second);
  const CompiledRanges wanted = compiled(*second);
  auto source = std::make_shared<PlanSource>();
  source->name = "test";
  source->graphs = {stored_of(*second, wanted)};
  timer_->runs = 0;
  const auto third = open(999);
  third->cache = std::make_unique<CompileCache>();
  third->stored_plans = source;
  EXPECT_TRUE(tune(*third));
  EXPECT_EQ(timer_->runs, 0);
  EXPECT_EQ(third->size_tuning.functions, second->size_tuning.functions);
  const CompiledRanges found = compiled(*third);
  ASSERT_EQ(found.plans.size(), wanted.plans.size());
  for (std::size_t i = 0; i < found.plans.size(); ++i)
    EXPECT_EQ(plan_text(*found.plans[i]), plan_text(*wanted.plans[i]));
}

TEST_F(SizeTuningTest, WhatWasDecidedIsInTheKeyOfPlans) {
  const auto key = [&](const Context& context) { return *plans_key(*graph(context), context, ranges(context), {}); };
  const auto first = open();
  const CacheKey before = key(*first);
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" ? 1e-6 : 3e-6; };
  tune(*first);
  EXPECT_NE(key(*first), before);
  first->cache->prune(0);
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" ? 2e-6 : 3e-6; };
  const auto second = open();
  tune(*second);
  EXPECT_EQ(key(*second), key(*first)) << "other times, the same decisions";
}

TEST_F(SizeTuningTest, ADamagedEntryIsMeasuredAgain) {
  const auto context = open();
  const auto key = tuning_key(*graph(*context), *context, ranges(*context));
  ASSERT_TRUE(key.has_value());
  const std::string text = "not what was stored";
  context->cache->store(*key, std::as_bytes(std::span(text)));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(tune(*context));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is of no use"), std::string::npos);
  EXPECT_GT(timer_->runs, 0);
}

TEST_F(SizeTuningTest, WhatTheUserNamedIsNeitherTimedNorOverruled) {
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" ? 1e-6 : 3e-6; };
  const auto context = open();
  context->priorities.set("linear", {"cpu"});
  tune(*context);
  EXPECT_FALSE(timer_->timed.contains("linear@rival"));
  for (const CompileRecord& record : compiled(*context).records) EXPECT_EQ(provider_of(record, "linear"), "cpu");
}

TEST_F(SizeTuningTest, UnderBatchInvarianceFunctionsAloneAreTimed) {
  timer_->table = [](const TimedRun& run) { return is_function(run) && run.contender != "default" ? 1e-6 : 3e-6; };
  const auto context = open();
  context->options.batch_invariant = true;
  tune(*context);
  for (const std::string& run : timer_->timed) EXPECT_TRUE(run.starts_with("rows_")) << run;
  EXPECT_EQ(context->priorities.tuned().size(), 0u);
}

TEST_F(SizeTuningTest, WhatADatabaseSettlesStays) {
  timer_->table = [](const TimedRun& run) { return run.contender == "rival" ? 1e-6 : 3e-6; };
  const auto first = open();
  tune(*first);
  timer_->timed.clear();
  const auto second = open(500);
  apply_tuning(first->size_tuning.measured, second->ops, second->priorities);
  tune(*second);
  EXPECT_FALSE(timer_->timed.contains("linear@rival"));
  EXPECT_EQ(provider_of(compiled(*second).records[0], "linear"), "rival");
}

// Its time differs next to others and in one function with them.
TEST_F(SizeTuningTest, APartThatWasMeasuredLeavesTheWholeToGeneratedCode) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const auto context = test_context();
  const auto traced = parse_graph(
      "graph g(%x: f32[s0, 64], %r: f32[s0, 64], %w: f32[64]) stage=traced where s0 in [1, 8] {\n"
      "  %y, %s = fused_add_rms_norm(%x, %r, %w, epsilon=1e-05, intermediate=input_dtype)\n"
      "  %q, %d = per_token_group_quant_int8(%y, group_size=32)\n  return %q, %d, %s\n}\n",
      context->ops);
  const auto compiled_by = [&] {
    const auto graph = traced->clone();
    return selected_impls(compile(*graph, *context, {8, 8}, {}).record);
  };
  const std::string whole = "fused_add_rms_norm_per_token_group_quant_int8";
  EXPECT_EQ(compiled_by().at(whole).begin()->second, "native");
  TunedCall part;
  for (const Shape& shape : {Shape{Dim::symbol("s0"), 64}, Shape{Dim::symbol("s0"), 64}, Shape{64}})
    part.operands.emplace_back(Meta::tensor(DType::f32, shape));
  part.attributes = complete_attributes(context->ops.at("fused_add_rms_norm").schema,
                                        {{"epsilon", 1e-5}, {"intermediate", EnumWord{"input_dtype"}}});
  part.range = {8, 8};
  context->priorities.prefer("fused_add_rms_norm", "cpu", part);
  EXPECT_EQ(compiled_by().at(whole).begin()->second, "native");
}

TEST_F(SizeTuningTest, IsWorkThatMayNotComeAfterReady) {
  const auto context = open();
  context->first_time_work->set_ready(true);
  const std::string message = message_of<InternalError>([&] { tune(*context); });
  EXPECT_NE(message.find("--forbid-lazy"), std::string::npos) << message;
}

TEST_F(SizeTuningTest, EveryCutOfAFunctionIsRunByThreadsAsByDefault) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const auto context = open(0, {"1", "2", "3", "7", "64"});
  const CompiledRanges standard = compiled(*context);
  const std::string name = function_of(*standard.plans[0]);
  for (const RowTuning& tuning : {RowTuning{.chunks = 1},
                                  {.chunks = 2},
                                  {.chunks = 8},
                                  {.unroll = 2, .chunks = 3},
                                  {.parts = 2, .chunks = 2},
                                  {.unroll = 4, .parts = 4, .chunks = 3}}) {
    for (const std::int64_t rows : {1, 2, 3, 7, 64}) context->size_tuning.functions[rows] = {{name, tuning}};
    const CompiledRanges all = compile_ranges(*graph(*context), *context, ranges(*context), {});
    for (const std::int64_t rows : {1, 2, 3, 7, 64}) {
      const std::size_t range = range_of(all.ranges, rows);
      ASSERT_NE(function_of(*all.plans[range]), name);
      EXPECT_EQ(result_of(all.plans[range], *context, rows), result_of(standard.plans.back(), *context, rows))
          << tuning.text() << " " << rows;
    }
  }
}

}  // namespace weft::size_tuning_test
