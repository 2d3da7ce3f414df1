// The properties of a run that a graph of its launches depends on.

#include "runtime/launch_key.h"

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tensor/batch.h"
#include "tests/small_layer.h"

namespace weft::launch_key_test {

// Keeps the key of every stretch that it is asked to capture.
struct KeyGraphBuilder : LaunchGraphBuilder {
  std::unique_ptr<LaunchGraph> capture(const LaunchList& list, std::size_t first, std::size_t last) override {
    keys.emplace_back(list).add(first, last);
    return host.capture(list, first, last);
  }
  HostLaunchGraphBuilder host;
  std::vector<LaunchKey> keys;
};

using Numbers = std::vector<std::int64_t>;
using Addresses = std::vector<LaunchKey::BoundAddress>;

class LaunchKeyTest : public testing::Test {
 protected:
  LaunchKeyTest() : context_(test_context()), traced_(small_layer(*context_)) {
    plan_ = *compile(*traced_->clone(), *context_, {1, 8}, {}).plan;
    for (PlanStep& step : plan_.steps) {
      if (step.op != "attention") continue;
      attention_ = *step.kernel;
      attention_.launches = true;
      step.kernel = &attention_;
    }
  }

  // Runs it over `rows` rows in one stretch or around attention.
  void run(ReplayMode mode, int rows, const Tensor& batch) {
    inputs_ = layer_inputs(*traced_, rows).copies();
    inputs_[kBatch] = batch;
    if (replay_ == nullptr)
      replay_ = std::make_unique<Replay>(std::make_shared<const Plan>(plan_), *context_->threads, nullptr,
                                         ReplaySettings{.graph_builder = &graph_builder_});
    for (std::size_t i = 0; i < inputs_.size(); ++i) replay_->bind(i, inputs_[i]);
    replay_->run(mode);
  }
  Numbers numbers(std::size_t stretch) const {
    Numbers numbers{7, 7, 7};  // leaves nothing
    graph_builder_.keys.at(stretch).numbers(numbers);
    return numbers;
  }
  Addresses addresses(std::size_t stretch) const {
    Addresses addresses(1);
    graph_builder_.keys.at(stretch).addresses(addresses);
    return addresses;
  }

  static constexpr std::size_t kX = 0, kBatch = 4, kPages = 5, kOut = 9;  // inputs of the layer
  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  Plan plan_;
  Kernel attention_;
  KeyGraphBuilder graph_builder_;
  std::vector<Tensor> inputs_;
  std::unique_ptr<Replay> replay_;
};

TEST_F(LaunchKeyTest, HasTheNumbersOfABatchThatIsLaunchedWith) {
  run(ReplayMode::full, 3, make_batch({{2, 2}, {1, 6}}, 4));
  EXPECT_EQ(numbers(0), (Numbers{3, 2, 2}));
  EXPECT_EQ(graph_builder_.keys[0].text(), "s0 = 3, 2 sequences of 2 pages");
  run(ReplayMode::full, 3, make_batch({{1, 1}, {2, 5}}, 4));
  EXPECT_EQ(numbers(0), (Numbers{3, 2, 2})) << "of other lengths";
  run(ReplayMode::full, 2, make_batch({{2, 2}}, 4));
  EXPECT_EQ(numbers(0), (Numbers{2, 1, 1}));
  EXPECT_EQ(graph_builder_.keys[0].text(), "s0 = 2, 1 sequence of 1 page");
}

TEST_F(LaunchKeyTest, HasTheSymbolsAloneOfOtherLaunches) {
  run(ReplayMode::piecewise, 3, make_batch({{2, 2}, {1, 6}}, 4));
  ASSERT_EQ(graph_builder_.keys.size(), 2u);
  for (const std::size_t stretch : {0, 1}) EXPECT_EQ(numbers(stretch), (Numbers{3}));
  EXPECT_EQ(graph_builder_.keys[0].text(), "s0 = 3");
}

TEST_F(LaunchKeyTest, LeavesOutTheBatchOfAHostFunctionWhichReadsItWhenItRuns) {
  attention_.launches = false;
  run(ReplayMode::full, 3, make_batch({{2, 2}, {1, 6}}, 4));
  EXPECT_EQ(numbers(0), (Numbers{3}));
}

TEST_F(LaunchKeyTest, HasThePlacesThatItsLaunchesLookInto) {
  run(ReplayMode::piecewise, 3, make_batch({{3, 3}}, 4));
  const Addresses before[] = {addresses(0), addresses(1)};
  replay_->bind(kX, layer_inputs(*traced_, 3).copy(kX));
  EXPECT_NE(addresses(0), before[0]);
  EXPECT_EQ(addresses(1), before[1]) << "which does not read it";
  replay_->bind(kX, inputs_[kX]);
  EXPECT_EQ(addresses(0), before[0]) << "which is back where it was";
  replay_->bind(kOut, layer_inputs(*traced_, 3).copy(kOut));
  EXPECT_EQ(addresses(0), before[0]);
  EXPECT_NE(addresses(1), before[1]);
}

TEST_F(LaunchKeyTest, TellsPagesApartThatLieInOnePlace) {
  run(ReplayMode::full, 3, make_batch({{3, 3}}, 4));
  const Addresses before = addresses(0);
  Tensor fewer = inputs_[kPages];
  fewer.storage = Storage::view_of(fewer.storage->data(), fewer.storage->bytes() / 2, fewer.storage);
  replay_->bind(kPages, fewer);
  EXPECT_NE(addresses(0), before);
}

}  // namespace weft::launch_key_test
