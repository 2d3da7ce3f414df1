// The dumps between passes, and the points where the passes may stop.

#include "compiler/pass_runner.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/base/temporary_folder.h"
#include "tests/small_layer.h"

namespace weft::pass_runner_test {

constexpr const char* kTwins = R"(
graph g(%x: f32[s0, 8]) stage=traced where s0 in [1, 8] {
  %a = abs(%x)
  %b = abs(%x)
  %c = add(%a, %b)
  return %c
}
)";

class PassRunner : public ::testing::Test {
 protected:
  std::vector<PassRecord> run(const PassRunnerOptions& options) {
    PassContext passes = pass_context(*context_, {1, 8});
    graph_ = parse_graph(kTwins, context_->ops);
    return run_passes(*graph_, passes, pipeline_passes(), options);
  }
  std::vector<std::string> printed_after(const std::vector<std::string>& passes) {
    std::vector<std::string> printed;
    PassRunnerOptions options;
    options.print_after = passes;
    options.print = [&](const std::string& pass, const Graph& graph) {
      printed.push_back(pass);
      texts_.push_back(display(graph));
    };
    run(options);
    return printed;
  }

  const std::shared_ptr<Context> context_ = test_context();
  std::shared_ptr<Graph> graph_;
  std::vector<std::string> texts_;
};

TEST_F(PassRunner, RecordsEveryPass) {
  const std::vector<PassRecord> records = run({});
  ASSERT_EQ(records.size(), pipeline_passes().size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].name, pipeline_passes()[i].name);
    EXPECT_FALSE(records[i].skipped);
    EXPECT_GE(records[i].milliseconds, 0);
    if (i > 0) {
      EXPECT_EQ(records[i].nodes_before, records[i - 1].nodes_after);
    }
  }
  EXPECT_EQ(graph_->stage, Stage::split);
}

TEST_F(PassRunner, SkipsWhatItIsToldTo) {
  run({.stop_after = Stage::pure});
  EXPECT_EQ(graph_->nodes().size(), 2u);
  PassRunnerOptions options{.skip = {"common_subexpression_elimination"}, .stop_after = Stage::pure};
  const std::vector<PassRecord> records = run(options);
  EXPECT_EQ(graph_->nodes().size(), 3u);
  const auto skipped = [](const PassRecord& record) { return record.skipped; };
  ASSERT_EQ(std::count_if(records.begin(), records.end(), skipped), 1);
  const auto record = std::find_if(records.begin(), records.end(), skipped);
  EXPECT_EQ(record->name, "common_subexpression_elimination");
  EXPECT_EQ(record->nodes_before, record->nodes_after);
}

TEST_F(PassRunner, RefusesToSkipAPassThatChangesTheStage) {
  for (const PassRow& row : pipeline_passes()) {
    PassRunnerOptions options{.skip = {row.name}};
    if (row.needs == row.leaves) {
      EXPECT_NO_THROW(run(options)) << row.name;
    } else {
      EXPECT_THROW(run(options), UserError) << row.name;
    }
  }
}

TEST_F(PassRunner, PrintsAfterThePassesNamed) {
  EXPECT_EQ(printed_after({}), std::vector<std::string>{});
  EXPECT_EQ(printed_after({"lower"}), std::vector<std::string>{"lower"});
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_NE(texts_[0].find("stage=lowered"), std::string::npos);
  EXPECT_EQ(printed_after({"split", "functionalize"}), (std::vector<std::string>{"functionalize", "split"}));
  EXPECT_EQ(printed_after({"all"}).size(), pipeline_passes().size());
}

TEST_F(PassRunner, DumpsOneNumberedFileForEachPass) {
  const TemporaryFolder folder;
  const PassRunnerOptions options{.skip = {"noop_elimination"}, .dump_folder = folder / "made/too"};
  run(options);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "made/too"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), pipeline_passes().size());  // one is skipped, the traced graph is first
  EXPECT_EQ(names[0], "00-trace.g.1-8.graph");
  EXPECT_EQ(names[1], "01-functionalize.g.1-8.graph");
  EXPECT_EQ(names[2], "03-common_subexpression_elimination.g.1-8.graph");
  EXPECT_EQ(read_file(folder / ("made/too/" + names.back()), 1 << 20), display(*graph_));
  for (const std::string& name : names)
    EXPECT_NO_THROW(parse_graph(read_file(folder / ("made/too/" + name), 1 << 20), context_->ops, name)) << name;
}

TEST_F(PassRunner, StopsAtAStage) {
  for (const Stage stage : {Stage::traced, Stage::pure, Stage::lowered, Stage::split}) {
    const std::vector<PassRecord> records = run({.stop_after = stage});
    EXPECT_EQ(graph_->stage, stage);
    EXPECT_EQ(records.empty(), stage == Stage::traced);
    for (const PassRecord& record : records)
      for (const PassRow& row : pipeline_passes())
        if (row.name == record.name) {
          EXPECT_LE(row.leaves, stage);
        }
  }
}

TEST(CompileTo, IsReadFromTheOptions) {
  Options options;
  EXPECT_EQ(pass_runner_options(options).stop_after, std::nullopt);
  for (const Stage stage : {Stage::traced, Stage::pure, Stage::lowered, Stage::split}) {
    set_option(options, "compile-to", stage_text(stage), "test");
    EXPECT_EQ(pass_runner_options(options).stop_after, stage);
  }
  set_option(options, "compile-to", "plan", "test");
  EXPECT_EQ(pass_runner_options(options).stop_after, std::nullopt);
}

TEST(CompileTo, LeavesAGraphThatRunsOpByOpToTheSameBits) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const LayerInputs inputs = layer_inputs(*traced, 5);
  EagerEvaluator eager(*context, {1, 8});
  const Values wanted = run_graph(*traced, eager, values_of(eager, inputs.copies()));
  for (const Stage stage : {Stage::traced, Stage::pure, Stage::lowered, Stage::split}) {
    const auto graph = traced->clone();
    const Compiled compiled = compile(*graph, *context, {1, 8}, {.stop_after = stage});
    EXPECT_EQ(compiled.plan, nullptr);
    ASSERT_NE(compiled.record.split, nullptr);
    EXPECT_EQ(compiled.record.split->stage, stage);
    const Values came = run_graph(*compiled.record.split, eager, values_of(eager, inputs.copies()));
    ASSERT_EQ(came.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(difference(wanted[i].tensor(), came[i].tensor(), {}, true), "") << stage_text(stage) << " " << i;
  }
}

TEST(RunGraph, WritesOverPagesThatTheGraphOwnsInsteadOfCopyingThem) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const LayerInputs inputs = layer_inputs(*traced, 3);
  EagerEvaluator eager(*context, {1, 8});
  for (const Stage stage : {Stage::pure, Stage::lowered, Stage::split}) {
    const auto graph = traced->clone();
    const Compiled compiled = compile(*graph, *context, {1, 8}, {.stop_after = stage});
    const Values given = values_of(eager, inputs.copies());
    const Values came = run_graph(*compiled.record.split, eager, given);
    EXPECT_EQ(came[2].tensor().storage, given[5].tensor().storage) << stage_text(stage);
    // The interpreter is the oracle and does not change its inputs.
    Interpreter oracle(*context);
    if (stage == Stage::split) continue;  // packed weights and chosen kernels are not its business
    const Values kept = values_of(oracle, inputs.copies());
    EXPECT_NE(run_graph(*compiled.record.split, oracle, kept)[2].tensor().storage, kept[5].tensor().storage);
  }
}

}  // namespace weft::pass_runner_test
