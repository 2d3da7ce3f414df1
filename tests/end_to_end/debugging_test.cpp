// The flags that show what happens on the way, through the program.

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tensor_file.h"
#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft {
namespace {

class Debugging : public ::testing::Test {
 protected:
  Debugging()
      : model_(
            SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q8_0)) {}

  const TemporaryFolder folder_;
  const std::string model_;
};

TEST_F(Debugging, CompileToStopsWhatIsDumped) {
  for (const std::string stage : {"traced", "pure", "lowered", "split"}) {
    const ProgramRun stopped = run_weft({"dump", "graph", model_, "--compile-to", stage});
    const ProgramRun asked = run_weft({"dump", "graph", model_, "--stage", stage});
    EXPECT_EQ(stopped.status, 0) << stopped.err;
    EXPECT_EQ(stopped.out, asked.out) << stage;
    EXPECT_NE(stopped.out.find("stage=" + stage), std::string::npos);
    EXPECT_EQ(breach_of_refusal(run_weft({"dump", "plan", model_, "--compile-to", stage}), "--compile-to=" + stage),
              "");
  }
  EXPECT_EQ(run_weft({"dump", "plan", model_, "--compile-to", "plan"}).status, 0);
}

TEST_F(Debugging, CompileToGivesTheSameBitsFromGraphText) {
  const std::string graph = folder_ / "g.graph";
  write_then_rename(graph, std::string_view("graph g(%x: f32[s0, 8], %w: f32[4]) stage=traced {\n"
                                            "  %a = silu_and_mul(%x)\n  %b = rms_norm(%a, %w, epsilon=1e-05)\n"
                                            "  %c, %d = fused_add_rms_norm.maybe_inplace(%a, %b, %w, epsilon=1e-05)\n"
                                            "  return %c, %d\n}\n"));
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {3, 8})), w = Tensor::empty(Meta::tensor(DType::f32, {4}));
  for (int i = 0; i < 24; ++i) x.as<float>()[i] = 0.25F * static_cast<float>(i) - 2;
  for (int i = 0; i < 4; ++i) w.as<float>()[i] = 1 + static_cast<float>(i);
  write_results(folder_ / "in", {{"x", x}, {"w", w}});
  std::string wanted;
  for (const char* stage : {"plan", "traced", "pure", "lowered", "split"}) {
    const ProgramRun run =
        run_weft({"graph", "run", graph, "--in", folder_ / "in", "--out", folder_ / "out", "--compile-to", stage});
    ASSERT_EQ(run.status, 0) << run.err;
    const std::string bytes = read_file(folder_ / "out", 1 << 20);
    if (wanted.empty()) wanted = bytes;
    EXPECT_EQ(bytes, wanted) << stage;
  }
}

TEST_F(Debugging, DumpsOneFileForEachPassOfEachGraph) {
  const std::string dumps = folder_ / "dumps";
  const ProgramRun run = run_weft({"complete", model_, "-p", "a", "-n", "1"}, "", {{"WEFT_DEBUG_DUMP_PATH", dumps}});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* name : {"00-trace.forward.", "12-split.forward.", "00-trace.head.", "10-lower.head."}) {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dumps))
      found += entry.path().filename().string().starts_with(name) ? 1 : 0;
    EXPECT_GE(found, 1) << name;
  }
}

TEST_F(Debugging, BenchTakesSeveralThreadCounts) {
  for (const std::vector<std::string>& threads :
       {std::vector<std::string>{"-t", "1,2"}, {"--threads=1,2"}, {"-t1,2"}, {"--threads", "1,2"}}) {
    std::vector<std::string> words{"bench", "model", model_, "-p", "4", "-n", "2", "-r", "1", "-o", "json"};
    words.insert(words.end(), threads.begin(), threads.end());
    const ProgramRun run = run_weft(words);
    ASSERT_EQ(run.status, 0) << run.err;
    const nlohmann::json rows = nlohmann::json::parse(run.out);
    ASSERT_EQ(rows.size(), 4u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].at("n_threads"), i < 2 ? 1 : 2);
      EXPECT_EQ(rows[i].at("n_prompt"), i % 2 == 0 ? 4 : 0);
    }
  }
  const ProgramRun mirrored = run_weft({"bench", "model", model_, "-p", "4", "-n", "0", "-r", "1", "-o", "jsonl"}, "",
                                       {{"WEFT_ARG_THREADS", "1"}});
  ASSERT_EQ(mirrored.status, 0) << mirrored.err;
  EXPECT_EQ(nlohmann::json::parse(mirrored.out).at("n_threads"), 1);
}

}  // namespace
}  // namespace weft
