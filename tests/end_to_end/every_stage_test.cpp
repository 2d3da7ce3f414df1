// The graphs of every architecture at every stage: legal, the same after a trip through text, and worth the same
// logits, bit for bit, when the model stops being compiled there and runs op by op.

#include <cstring>
#include <iostream>

#include <gtest/gtest.h>

#include "apps/cli/graph_commands.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tests/sample_checkpoint.h"

namespace weft::every_stage_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr Stage kStages[] = {Stage::traced, Stage::pure, Stage::lowered, Stage::split};

std::shared_ptr<Context> context_with(const Settings& settings) {
  Options options;
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  return make_context(std::move(options));
}

std::vector<float> logits_of(const std::string& path, const ModelRegistry& models, const Settings& settings) {
  Engine engine(context_with(settings), Checkpoint::open(path), models);
  std::vector<int> ids, rows;
  for (int i = 0; i < 21; ++i) {
    ids.push_back(i * 37 % 250);
    rows.push_back(i);
  }
  std::vector<float> logits;
  engine.score(ids, rows,
               [&](int, std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); });
  return logits;
}

class EveryStage : public ::testing::Test {
 protected:
  // Calls `body` with a checkpoint of each architecture and kind of weight, in both precisions.
  void for_each(const std::function<void(const std::string& path, const Settings& settings)>& body) const {
    for (const std::string& architecture : text_architectures(models_)) {
      const SampleCheckpoint sample(models_.find(architecture, "test"), {{"model_type", architecture}});
      for (const DType dtype : {DType::f32, DType::q4_1})
        for (const char* precision : {"fast", "exact"}) {
          SCOPED_TRACE(architecture + " " + std::string(dtype_text(dtype)) + " " + precision);
          body(sample.write_gguf(folder_, "m.gguf", dtype), {{"activation-precision", precision}});
        }
    }
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(EveryStage, IsLegalAndTheSameAfterATripThroughText) {
  int graphs = 0;
  for_each([&](const std::string& path, const Settings& settings) {
    const auto context = context_with(settings);
    const ModelRunner runner(context, Checkpoint::open(path), models_);
    for (const auto& traced : {runner.model().phases()[0].forward.traced, runner.model().phases()[0].head.traced})
      for (const Stage stage : kStages) {
        SCOPED_TRACE(traced->name + " " + std::string(stage_text(stage)));
        const auto graph = traced->clone();
        run_passes_to(*graph, *context, stage);
        EXPECT_EQ(graph->stage, stage);
        EXPECT_EQ(find_breach(*graph, context->ops).value_or(""), "");
        const std::string shown = display(*graph), bare = canonical(*graph);
        const auto parsed = parse_graph(shown, context->ops);
        EXPECT_EQ(find_breach(*parsed, context->ops).value_or(""), "");
        EXPECT_EQ(display(*parsed), shown);
        EXPECT_TRUE(structurally_equal(*parsed, *graph));
        EXPECT_EQ(structural_hash(*parsed), structural_hash(*graph));
        const auto from_bare = parse_graph(bare, context->ops);
        EXPECT_EQ(canonical(*from_bare), bare);
        EXPECT_TRUE(structurally_equal(*from_bare, *graph));
        ++graphs;
      }
  });
  std::cout << "graphs: " << graphs << "\n";
}

TEST_F(EveryStage, IsWorthTheSameBits) {
  int runs = 0;
  for_each([&](const std::string& path, const Settings& settings) {
    const std::vector<float> wanted = logits_of(path, models_, settings);
    for (const Stage stage : kStages) {
      Settings stopped = settings;
      stopped.emplace_back("compile-to", stage_text(stage));
      const std::vector<float> came = logits_of(path, models_, stopped);
      ASSERT_EQ(came.size(), wanted.size());
      EXPECT_EQ(std::memcmp(came.data(), wanted.data(), wanted.size() * sizeof(float)), 0) << stage_text(stage);
      ++runs;
    }
  });
  std::cout << "runs: " << runs << "\n";
}

TEST_F(EveryStage, CanBeReachedFromTheTextOfTheStageBefore) {
  for_each([&](const std::string& path, const Settings& settings) {
    const auto context = context_with(settings);
    const ModelRunner runner(context, Checkpoint::open(path), models_);
    const auto straight = runner.model().phases()[0].forward.traced->clone();
    run_passes_to(*straight, *context, Stage::split);
    auto stepwise = parse_graph(display(*runner.model().phases()[0].forward.traced), context->ops);
    for (const Stage stage : {Stage::pure, Stage::lowered, Stage::split}) {
      run_passes_to(*stepwise, *context, stage);
      stepwise = parse_graph(display(*stepwise), context->ops);
    }
    EXPECT_EQ(canonical(*stepwise), canonical(*straight));
  });
}

}  // namespace weft::every_stage_test
