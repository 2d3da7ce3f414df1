// The Plans of every architecture are the same after a round trip through bytes.

#include <iostream>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "runtime/plan_file.h"
#include "tests/sample_checkpoint.h"

namespace weft::stored_plan_test {

// The kernels that a Plan calls.
KernelLookup kernels_of(const Plan& plan) {
  return [&plan](const std::string& op, const std::string& provider) -> const Kernel* {
    for (const PlanStep& step : plan.steps)
      if (step.kernel->op == op && step.kernel->provider == provider) return step.kernel;
    return nullptr;
  };
}

TEST(StoredPlan, IsThePlanOfEveryModel) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder folder;
  for (const std::string& architecture : models.architectures()) {
    const SampleCheckpoint sample(models.find(architecture, "test"), {{"model_type", architecture}});
    const std::string path = sample.write_folder(folder, architecture, DType::bf16);
    Engine engine(make_context(Options()), Checkpoint::open(path), make_model_registry());
    for (const Plan* plan : {engine.runner().forward_plan(), engine.runner().head_plan()}) {
      ASSERT_NE(plan, nullptr);
      const std::vector<std::byte> bytes = plan_bytes(*plan);
      const Plan again = plan_from_bytes(bytes, kernels_of(*plan));
      verify_plan(again);
      EXPECT_EQ(plan_text(again), plan_text(*plan)) << architecture;
      EXPECT_EQ(plan_bytes(again), bytes) << architecture;
      std::cout << "count: " << architecture << " " << plan->name << ": " << plan->steps.size() << " steps, "
                << bytes.size() << " bytes\n";
    }
  }
}

}  // namespace weft::stored_plan_test
