// A weight is laid out for the provider that measurements put first.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/tune/tuning_database.h"
#include "tests/engine/tiny_model.h"

namespace weft::tuned_test {

class TunedWeights : public ::testing::Test {
 protected:
  // linear by `plain_only`, which refuses packed weights, then by cpu.
  std::unique_ptr<Engine> engine(bool tuned, bool eager, const std::vector<std::string>& user = {}) {
    Options options;
    options.activation_precision = "exact";
    options.enforce_eager = eager;
    const auto context = make_context(options);
    Kernel kernel = *context->kernels.find("linear", "cpu");
    kernel.provider = "plain_only";
    kernel.supports = [supports = kernel.supports](const KernelRequest& request) {
      return request.operands[1]->packed.empty() ? supports(request) : Verdict::no("reads plain weights");
    };
    context->kernels.add(std::move(kernel));
    if (!user.empty()) context->priorities.set("linear", user);
    if (tuned) apply_tuning(database(), context->ops, context->priorities);
    return std::make_unique<Engine>(context, Checkpoint::open(path_), make_model_registry());
  }

  // The gate and up weights of the model by plain_only, all others as they are.
  static TuningDatabase database() {
    TuningDatabase made;
    TuningEntry entry;
    entry.op = "linear";
    entry.call.operands = {Meta::tensor(DType::f32, {Dim::symbol("s0"), 64}), Meta::tensor(DType::q4_1, {192, 64}),
                           std::nullopt};
    entry.call.range = {1, 128};
    entry.weight = 1;
    entry.rows = {1, 128};
    entry.standard = "cpu";
    entry.times = {{"cpu", "q4x32", {{200, 200, 200}, {200, 200, 200}}},
                   {"plain_only", "", {{100, 100, 100}, {100, 100, 100}}}};
    made.add(std::move(entry));
    return made;
  }

  static std::map<std::string, int> linears(Engine& engine) {
    std::map<std::string, int> counts;
    for (const PassRecord& pass : engine.runner().records().front().passes)
      for (const NodeChoice& node : pass.result.choices)
        if (node.op == "linear") ++counts[node.choice.provider];
    return counts;
  }

  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

TEST_F(TunedWeights, AreLaidOutForTheirProviderAndGiveTheSameTokensEagerly) {
  auto standard = engine(false, false), tuned = engine(true, false), eager = engine(true, true);
  EXPECT_EQ(linears(*standard), (std::map<std::string, int>{{"cpu", 8}}));
  EXPECT_EQ(linears(*tuned), (std::map<std::string, int>{{"cpu", 6}, {"plain_only", 2}}));
  EXPECT_EQ(all_logits(*tuned, some_ids(9)), all_logits(*eager, some_ids(9)));
  EXPECT_EQ(all_logits(*tuned, some_ids(9)), all_logits(*standard, some_ids(9))) << "one kernel under two names";
}

TEST_F(TunedWeights, AreLaidOutForTheProviderThatTheUserNamed) {
  EXPECT_EQ(linears(*engine(true, false, {"cpu"})), (std::map<std::string, int>{{"cpu", 8}}));
  EXPECT_EQ(linears(*engine(false, false, {"plain_only"})), (std::map<std::string, int>{{"plain_only", 8}}));
}

}  // namespace weft::tuned_test
