// A replay with other bits than its single steps is detected, with the location.

#include "runtime/check_replay.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::check_replay_test {

class CheckReplayTest : public testing::Test {
 protected:
  CheckReplayTest() : context_(test_context()), traced_(small_layer(*context_)) {
    // Each op is a step of its own, for all kernels of this host.
    plan_ = *compile(*traced_->clone(), *context_, {1, 8}, {.fuse = false}).plan;
  }

  // After a run that is checked: results and inputs, as numbers.
  std::vector<std::vector<double>> run(bool check, ReplayMode mode = ReplayMode::full) {
    Replay replay(std::make_shared<const Plan>(plan_), *context_->threads, nullptr, {.check = check});
    const std::vector<Tensor> inputs = layer_inputs(*traced_, 3).copies();
    for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, inputs[i]);
    replay.run(mode);
    std::vector<std::vector<double>> all;
    for (std::size_t i = 0; i < plan_.results.size(); ++i) all.push_back(elements_of(replay.result(i)));
    return all;
  }

  // Calls of the step's kernel add `amount(call)` to the first element of result 0; calls count from 0.
  void disturb(std::size_t step, std::function<float(int call)> amount) {
    kernel_ = *plan_.steps[step].kernel;
    kernel_.run = [run = kernel_.run, amount, calls = std::make_shared<int>(0)](const KernelCall& call) {
      run(call);
      *call.results[0].as<float>() += amount((*calls)++);
    };
    plan_.steps[step].kernel = &kernel_;
  }

  std::size_t last_of(const std::string& op) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (plan_.steps[i].op == op) found = i;
    return found;
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  Plan plan_;
  Kernel kernel_;
};

TEST_F(CheckReplayTest, PassesAndLeavesWhatAPlainRunLeaves) {
  for (const ReplayMode mode : {ReplayMode::full, ReplayMode::piecewise, ReplayMode::none})
    EXPECT_EQ(run(true, mode), run(false)) << replay_mode_text(mode);
}

TEST_F(CheckReplayTest, NamesTheStepItsOpItsPieceAndTheDifference) {
  const std::size_t step = last_of("linear");
  ASSERT_GT(step, 0u);
  disturb(step, [](int call) { return call % 2 == 0 ? 512.0f : 0.0f; });
  const std::string message = message_of<InternalError>([&] { run(true); });
  EXPECT_NE(message.find(fmt::format("step {} linear@", step)), std::string::npos) << message;
  EXPECT_NE(message.find("of piece " + plan_.steps[step].piece), std::string::npos) << message;
  EXPECT_NE(message.find("1 elements differ, the largest difference is 512"), std::string::npos) << message;
}

TEST_F(CheckReplayTest, SaysWhenADifferenceDoesNotComeAgain) {
  disturb(last_of("linear"), [](int call) { return call == 0 ? 1.0f : 0.0f; });
  const std::string message = message_of<InternalError>([&] { run(true); });
  EXPECT_NE(message.find("but not again"), std::string::npos) << message;
}

TEST_F(CheckReplayTest, FindsADifferenceInKvPages) {
  const std::size_t step = last_of("kv_cache_update");
  disturb(step, [](int call) { return call % 2 == 0 ? 0.25f : 0.0f; });
  const std::string message = message_of<InternalError>([&] { run(true); });
  EXPECT_NE(message.find(fmt::format("step {} kv_cache_update@", step)), std::string::npos) << message;
}

}  // namespace weft::check_replay_test
