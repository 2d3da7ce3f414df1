// Compiled Plans are the same after a round trip through bytes, and run to the same bits.

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/runtime/plan_samples.h"
#include "tests/small_layer.h"

namespace weft::plan_file_compiled_test {

// The kernels that a Plan calls.
KernelLookup kernels_of(const Plan& plan) {
  return [&plan](const std::string& op, const std::string& provider) -> const Kernel* {
    for (const PlanStep& step : plan.steps)
      if (step.kernel->op == op && step.kernel->provider == provider) return step.kernel;
    return nullptr;
  };
}

std::size_t generated_steps(const Plan& plan) {
  std::size_t count = 0;
  for (const PlanStep& step : plan.steps) count += step.kernel->origin == "generated" ? 1 : 0;
  return count;
}

std::vector<float> scalars_of(const Plan& plan) {
  std::vector<float> scalars;
  for (const PlanSlot& slot : plan.slots)
    if (slot.kind == SlotKind::scalar) scalars.push_back(slot.scalar);
  return scalars;
}

// The bytes of a result; of KV pages all of them.
std::vector<std::byte> bytes_of_result(const Replay& replay, std::size_t index) {
  const Tensor result = replay.result(index);
  const std::int64_t count = result.meta.is_tensor() ? result.meta.bytes().number() : result.storage->bytes();
  return {result.data(), result.data() + count};
}

std::vector<std::vector<std::byte>> results_of(const std::shared_ptr<const Plan>& plan, const LayerInputs& inputs,
                                               ThreadPool& threads) {
  Replay replay(plan, threads);
  for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
  replay.run();
  std::vector<std::vector<std::byte>> results;
  for (std::size_t i = 0; i < plan->results.size(); ++i) results.push_back(bytes_of_result(replay, i));
  return results;
}

TEST(PlanFileCompiled, RunsToTheSameBits) {
  for (const bool native : {false, true}) {
    const auto context = test_context();
    if (native) {
      for (const char* op : {"fused_add_rms_norm", "silu_and_mul"}) context->priorities.set(op, {"native"});
    }
    const auto traced = small_layer(*context);
    const auto plan = compile(*traced->clone(), *context, {1, 8}, {}).plan;
    EXPECT_GE(generated_steps(*plan), native && can_compile_rows() ? 3u : 0u);
    EXPECT_EQ(scalars_of(*plan), can_compile_rows() ? std::vector<float>({1e-05f, 1e-06f}) : std::vector<float>());
    const auto again = std::make_shared<const Plan>(plan_from_bytes(plan_bytes(*plan), kernels_of(*plan)));
    verify_plan(*again);
    EXPECT_EQ(plan_difference(*plan, *again), "");
    for (const int rows : {1, 3, 8}) {
      const LayerInputs inputs = layer_inputs(*traced, rows);
      EXPECT_EQ(results_of(again, inputs, *context->threads), results_of(plan, inputs, *context->threads))
          << rows << " rows";
    }
  }
}

TEST(PlanFileCompiled, GivesTheSameBytesFromAnotherContext) {
  std::vector<std::byte> bytes[2];
  for (auto& one : bytes) {
    const auto context = test_context();
    one = plan_bytes(*compile(*small_layer(*context), *context, {1, 8}, {}).plan);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace weft::plan_file_compiled_test
