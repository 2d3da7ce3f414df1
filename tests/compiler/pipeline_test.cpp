// From a traced graph to a plan, which computes the meaning of the graph.

#include "compiler/pipeline.h"

#include <gtest/gtest.h>

#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "compiler/splitting_ops.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::pipeline_test {

TEST(Pipeline, GivesTheSameBitsCompiledAsEager) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  for (int rows : {3, 7}) {
    auto graph = traced->clone();
    const Compiled compiled = compile(*graph, *context, {1, 8}, {});
    Replay replay(compiled.plan, *context->threads);
    const LayerInputs inputs = layer_inputs(*traced, rows);
    for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
    replay.run();
    EagerEvaluator eager(*context, {1, 8});
    const Values wanted = run_graph(*traced, eager, values_of(eager, inputs.copies()));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Tensor came = replay.result(i);
      EXPECT_EQ(difference(wanted[i].tensor(), came, {}, true), "") << "result " << i << " of " << rows << " rows";
    }
  }
}

TEST(Pipeline, ComputesByReferenceWhatTheUserNamesForIt) {
  const auto context = test_context();
  for (const char* op : {"fused_add_rms_norm", "silu_and_mul", "rotary_embedding", "linear"})
    context->priorities.set(op, {"reference"});
  const auto traced = small_layer(*context);
  auto graph = traced->clone();
  const Compiled compiled = compile(*graph, *context, {1, 8}, {});
  for (const auto& [op, nodes] : selected_impls(compiled.record))
    for (const auto& [node, provider] : nodes)
      EXPECT_EQ(provider == "reference", op != "attention" && op != "kv_cache_update" && op != "clone") << op;
  Replay replay(compiled.plan, *context->threads);
  const LayerInputs inputs = layer_inputs(*traced, 5);
  for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
  replay.run();
  EagerEvaluator eager(*context, {1, 8});
  const Values wanted = run_graph(*traced, eager, values_of(eager, inputs.copies()));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(difference(wanted[i].tensor(), replay.result(i), {}, true), "") << "result " << i;
}

TEST(Pipeline, TheGraphOfEachStageIsTheOneThatCompilingStopsAt) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const auto stages = stages_of(*traced, *context, {1, 8});
  ASSERT_EQ(stages.size(), 4u);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    PassRunnerOptions stopping;
    stopping.stop_after = static_cast<Stage>(i);
    const CompiledRanges stopped = compile_ranges(*traced, *context, {{1, 8}}, stopping);
    EXPECT_EQ(stages[i]->stage, static_cast<Stage>(i));
    EXPECT_EQ(display(*stages[i]), display(*stopped.records[0].split)) << i;
  }
}

TEST(Pipeline, StaysNearTheMeaning) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const LayerInputs inputs = layer_inputs(*traced, 5);
  Interpreter interpreter(*context);
  EagerEvaluator eager(*context, {1, 8});
  const Values wanted = run_graph(*traced, interpreter, values_of(interpreter, inputs.copies()));
  const Values came = run_graph(*traced, eager, values_of(eager, inputs.copies()));
  ASSERT_EQ(came.size(), wanted.size());
  // Sums of 32 products and a softmax, in another order.
  EXPECT_EQ(difference(wanted[0].tensor(), came[0].tensor(), {.absolute = 1e-4, .relative = 1e-4}, false), "");
}

TEST(Pipeline, CutsAtAttentionAndRecordsEveryPass) {
  const auto context = test_context();
  auto graph = small_layer(*context);
  const Compiled compiled = compile(*graph, *context, {1, 8}, {});
  EXPECT_EQ(compiled.record.passes.size(), pipeline_passes().size());
  int splitting = 0;
  for (const auto& piece : compiled.record.split->pieces) splitting += piece->kind == DefinitionKind::splitting ? 1 : 0;
  EXPECT_EQ(splitting, 1);
  EXPECT_EQ(compiled.plan->bounds.at("s0"), (Interval{1, 8}));
}

// Whether a step that may do so makes `to` in the memory of `from`, which it is the last to read.
bool is_handed_over(const Plan& plan, const PlanSlot& from, const PlanSlot& to) {
  if (from.last_step != to.first_step || from.offset != to.offset || !(from.bytes == to.bytes)) return false;
  const PlanStep& step = plan.steps[static_cast<std::size_t>(to.first_step)];
  for (std::size_t i = 0; i < step.kernel->may_lie_over.size(); ++i) {
    const int over = step.kernel->may_lie_over[i];
    if (over >= 0 && &plan.slots[static_cast<std::size_t>(step.results[i].slot)] == &to)
      return &plan.slots[static_cast<std::size_t>(step.operands[static_cast<std::size_t>(over)].slot)] == &from;
  }
  return false;
}

TEST(MemoryPlan, KeepsLiveSlotsApartAndReusesDeadOnes) {
  const auto context = test_context();
  auto graph = small_layer(*context);
  const Compiled compiled = compile(*graph, *context, {1, 8}, {});
  const Plan& plan = *compiled.plan;
  auto bytes = [&](const PlanSlot& slot) { return slot.bytes.range(plan.bounds).hi; };
  int compared = 0;
  for (const PlanSlot& a : plan.slots)
    for (const PlanSlot& b : plan.slots) {
      if (&a == &b || a.kind != SlotKind::arena || b.kind != SlotKind::arena || a.first_step < 0 || b.first_step < 0)
        continue;
      if (a.first_step > b.last_step || b.first_step > a.last_step) continue;
      if (is_handed_over(plan, a, b) || is_handed_over(plan, b, a)) continue;
      ++compared;
      EXPECT_TRUE(a.offset + bytes(a) <= b.offset || b.offset + bytes(b) <= a.offset) << plan_text(plan);
    }
  EXPECT_GT(compared, 4);
  for (const PlanSlot& slot : plan.slots)
    if (slot.kind == SlotKind::arena) {
      EXPECT_LE(slot.offset + bytes(slot), plan.arena_bytes);
    }
  EXPECT_LT(plan.arena_bytes, plan.unshared_bytes);
}

TEST(MemoryPlan, KeepsScratchApartFromWhatLivesDuringItsStep) {
  const auto context = test_context();
  auto graph = small_layer(*context);
  const Compiled compiled = compile(*graph, *context, {1, 8}, {});
  const Plan& plan = *compiled.plan;
  int compared = 0, shared = 0;
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const PlanStep& step = plan.steps[static_cast<std::size_t>(i)];
    const std::int64_t begin = step.scratch_offset, end = begin + step.scratch_bytes.range(plan.bounds).hi;
    EXPECT_LE(end, plan.arena_bytes);
    for (const PlanSlot& slot : plan.slots) {
      if (slot.kind != SlotKind::arena || begin == end) continue;
      const bool meets = slot.offset < end && begin < slot.offset + slot.bytes.range(plan.bounds).hi;
      if (slot.first_step <= i && i <= slot.last_step) {
        EXPECT_FALSE(meets) << plan_text(plan);
        ++compared;
      } else {
        shared += meets ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 4);
  EXPECT_GT(shared, 0);
}

TEST(SplittingOps, ReadVllmNamesOnceEach) {
  const auto context = test_context();
  const auto resolve = [&](const Words& given) { return resolve_splitting_ops(given, context->ops); };
  EXPECT_EQ(resolve({"vllm::unified_attention_with_output", "vllm::unified_kv_cache_update", "vllm::mamba_mixer",
                     "vllm.unified_attention", "linear"}),
            (Words{"attention", "kv_cache_update", "linear"}));
  EXPECT_EQ(resolve({"attention"}), Words{"attention"});
  EXPECT_EQ(resolve({"vllm::gdn_attention_core", "vllm::short_conv"}), (Words{"linear_attention", "causal_conv1d"}));
  EXPECT_EQ(resolve({"vllm::gdn_attention_core", "vllm::short_conv", "vllm::unified_attention"}), Words{"attention"})
      << "which splits the graph at these, too";
  EXPECT_EQ(resolve({}), Words{});
  EXPECT_EQ(splitting_ops_without_counterpart({"vllm::kda_attention", "attention", "vllm::short_conv"}),
            Words{"vllm::kda_attention"});
  const std::string error = message_of([&] { resolve({"attention", "vllm::short_convs", "attenton", "linear"}); });
  EXPECT_NE(error.find("\"vllm::short_convs\", did you mean \"vllm::short_conv\"?"), std::string::npos) << error;
  EXPECT_NE(error.find("\"attenton\", did you mean \"attention\"?"), std::string::npos) << error;
}

}  // namespace weft::pipeline_test
