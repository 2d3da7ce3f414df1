// --batch-invariant admits the kernels that declare it, and reports which ones it removes.

#include "compiler/check/batch_invariance.h"

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "tests/test_context.h"

namespace weft::batch_invariance_test {

std::shared_ptr<Context> context_with_uncertain(bool batch_invariant, const Priorities& priorities = {}) {
  Registrations registrations("the test");
  const auto run = [](const KernelCall&) {};
  registrations.register_impl("rms_norm", "uncertain", run, {.batch_invariant = false});
  registrations.register_impl("add", "uncertain", run, {.batch_invariant = false});
  registrations.register_impl("mul", "uncertain", run, {.batch_invariant = true});
  registrations.register_impl("neg", "uncertain", run, {.batch_invariant = false});
  Options options;
  options.threads = 1;
  options.batch_invariant = batch_invariant;
  options.ir_op_priority = priorities;
  return make_context(std::move(options), std::move(registrations));
}

const Priorities kUncertainFirst = {{"rms_norm", {"uncertain"}}, {"add", {"uncertain"}}, {"mul", {"uncertain"}}};

TEST(BatchInvariance, SaysWhatItSwitchesOff) {
  EXPECT_EQ(switched_off_by_batch_invariance(*context_with_uncertain(true, kUncertainFirst)),
            std::vector<std::string>{"--batch-invariant switches off uncertain for add, rms_norm: a row's result could "
                                     "depend on the other rows of its batch"});
  EXPECT_EQ(switched_off_by_batch_invariance(*context_with_uncertain(true)),
            std::vector<std::string>{"--batch-invariant switches off none of the kernels that would be chosen from"});
  EXPECT_TRUE(switched_off_by_batch_invariance(*context_with_uncertain(false, kUncertainFirst)).empty());
}

TEST(BatchInvariance, AdmitsOnlyKernelsThatDeclareIt) {
  const std::vector<std::optional<Meta>> operands = {Meta::tensor(DType::f32, {2, 8}),
                                                     Meta::tensor(DType::f32, {2, 8})};
  const std::vector<Meta> results = {*operands[0]};
  const Attributes none;
  const auto chosen = [&](const std::string& op, bool batch_invariant) {
    const auto context = context_with_uncertain(batch_invariant, kUncertainFirst);
    return select_kernel(context->kernels, context->priorities, op, {operands, results, none, {1, 8}}, batch_invariant);
  };
  EXPECT_EQ(chosen("add", false).provider, "uncertain");
  EXPECT_EQ(chosen("mul", true).provider, "uncertain");
  const Choice choice = chosen("add", true);
  EXPECT_EQ(choice.provider, "cpu");
  ASSERT_EQ(choice.refused.size(), 1u);
  EXPECT_EQ(choice.refused[0].reason, "it depends on the other rows of the batch");
}

}  // namespace weft::batch_invariance_test
