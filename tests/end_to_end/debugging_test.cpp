// The flags that show what happens on the way, through the program.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tensor_file.h"
#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/test_context.h"

namespace weft::debugging_test {

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
  for (const std::string& name : {std::string("00-trace.forward."), dump_prefix("split") + "forward.",
                                  std::string("00-trace.head."), dump_prefix("lower") + "head."}) {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dumps))
      found += entry.path().filename().string().starts_with(name) ? 1 : 0;
    EXPECT_GE(found, 1) << name;
  }
}

TEST_F(Debugging, BisectFindsNothingWhereAllIsRight) {
  const ProgramRun run = run_weft({"bisect", model_, "-p", "The sea"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("the same bits"), std::string::npos) << run.out;
  const ProgramRun json = run_weft({"bisect", model_, "-p", "The sea", "--json", "--expect-fusions=all"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("differs"), false) << json.out;
}

TEST_F(Debugging, WhyNotTellsOfEachNodeOrOfOne) {
  const ProgramRun all = run_weft({"explain", model_, "--why-not", "act_quant"});
  ASSERT_EQ(all.status, 0) << all.err;
  const std::string match = "forward: silu_and_mul_per_token_group_quant_int8 matches at ";
  const std::size_t line = all.out.find(match);
  ASSERT_NE(line, std::string::npos) << all.out;
  EXPECT_EQ(all.out.find(match, line + 1), std::string::npos) << "all nodes share a line: " << all.out;
  EXPECT_EQ(all.out.find("misses at"), std::string::npos) << "the other quantizations are no near misses: " << all.out;
  EXPECT_NE(all.out.find("no near misses"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find(" nodes, the first is %", line), std::string::npos) << all.out;
  const std::size_t at = all.out.find('%', line) + 1;
  const std::string node = all.out.substr(at, all.out.find('\n', at) - at);
  const ProgramRun one = run_weft({"explain", model_, "--why-not", "act_quant@%" + node});
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find(match + "%" + node + "\n"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("forward: gelu_and_mul_per_token_group_quant_int8 misses at %" + node + ": "),
            std::string::npos)
      << one.out;
  EXPECT_EQ(one.out.find("no near misses"), std::string::npos) << one.out;
  EXPECT_EQ(run_weft({"explain", model_, "--why-not", "act_quant@nowhere"}).status, 2);
  EXPECT_EQ(run_weft({"explain", model_, "--why-not", "act_quent"}).status, 2);
}

TEST_F(Debugging, WhyNotAsJsonHasTheMatchesOfTheText) {
  const std::vector<std::string> words{"explain", model_, "--why-not", "silu_and_mul_per_token_group_quant_int8"};
  const ProgramRun text = run_weft(words);
  ASSERT_EQ(text.status, 0) << text.err;
  std::vector<std::string> json_words = words;
  json_words.push_back("--json");
  const ProgramRun run = run_weft(json_words);
  ASSERT_EQ(run.status, 0) << run.err;
  std::size_t matches = 0;
  for (const nlohmann::json& found : nlohmann::json::parse(run.out)) {
    EXPECT_EQ(found.at("pattern"), words.back());
    EXPECT_LE(found.at("range").at(0), found.at("range").at(1));
    if (found.at("matches").empty()) continue;
    ++matches;
    EXPECT_EQ(found.at("graph"), "forward");
    EXPECT_NE(text.out.find("%" + found.at("matches").at(0).get<std::string>()), std::string::npos) << text.out;
  }
  EXPECT_EQ(matches, 1U);
}

TEST_F(Debugging, GraphMatchTellsMatchesAndNearMisses) {
  const std::string path = folder_ / "match.graph";
  std::ofstream(path) << "graph g(%x: f32[s0, 128]) stage=pure {\n  %a = silu_and_mul(%x)\n"
                         "  %q, %d = per_token_group_quant_int8(%a, group_size=32)\n  return %q, %d\n}\n";
  const ProgramRun run = run_weft({"graph", "match", path, "--pattern", "act_quant"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("g: silu_and_mul_per_token_group_quant_int8 matches at %q\n"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("misses at"), std::string::npos) << "no other pattern found a second node: " << run.out;
  const ProgramRun one = run_weft({"graph", "match", path, "--pattern", "gelu_and_mul_per_token_group_quant_int8@q"});
  EXPECT_NE(one.out.find("misses at %q: %a: is silu_and_mul, wanted gelu_and_mul\n"), std::string::npos) << one.out;
  EXPECT_EQ(run_weft({"graph", "match", path, "--pattern", "act_quant@nowhere"}).status, 2);
  EXPECT_EQ(run_weft({"graph", "match", path, "--pattern", "act_quant@"}).status, 2);
  const ProgramRun json = run_weft({"graph", "match", path, "--json"});
  EXPECT_GE(nlohmann::json::parse(json.out).size(), 6u) << json.out;
}

TEST_F(Debugging, GraphMatchSaysOnceWhatAWrittenOutQuantizationLacks) {
  const std::string path = folder_ / "quantization.graph";
  std::ofstream(path) << "graph g(%x: f32[s0, 128]) stage=pure {\n  %r = reshape(%x, shape=[s0, 2, 64])\n"
                         "  %b = abs(%r)\n  %m = amax(%b)\n  %c = clamp(%m, min=1e-10)\n"
                         "  %s = div_scalar(%c, value=128.0)\n  %d = div(%r, %s)\n  %n = round(%d)\n"
                         "  %q = cast(%n, dtype=i8)\n  %q2 = reshape(%q, shape=[s0, 128])\n"
                         "  %s2 = reshape(%s, shape=[s0, 2])\n  return %q2, %s2\n}\n";
  for (const std::string pattern : {"", "raise", "per_token_group_quant_int8", "per_token_group_quant_int8@q"}) {
    std::vector<std::string> words = {"graph", "match", path};
    if (!pattern.empty()) words.insert(words.end(), {"--pattern", pattern});
    const ProgramRun run = run_weft(words);
    ASSERT_EQ(run.status, 0) << run.err;
    const std::string wanted = "divides by 128, wanted 127";
    const std::size_t at = run.out.find(wanted);
    EXPECT_NE(at, std::string::npos) << pattern << run.out;
    EXPECT_EQ(run.out.find(wanted, at + 1), std::string::npos) << pattern << run.out;
  }
}

TEST_F(Debugging, LimitedRewritesSayWhatWasHeldBack) {
  const ProgramRun run = run_weft({"explain", model_, "--limit-rewrites", "rms_quant=1", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  int held = 0;
  const nlohmann::json explained = nlohmann::json::parse(run.out);
  for (const auto& pass : explained.at("passes")) {
    int matched = 0;
    for (const auto& pattern : pass.at("patterns")) {
      matched += pattern.at("matched").get<int>();
      for (const auto& miss : pattern.at("near_misses")) held += miss.at("reason") == "--limit-rewrites" ? 1 : 0;
    }
    if (pass.at("name") == "fuse_norm_quant") {
      EXPECT_LE(matched, 1);
    }
  }
  EXPECT_GE(held, 1);
  EXPECT_EQ(run_weft({"explain", model_, "--limit-rewrites", "rms_quent=1"}).status, 2);
  EXPECT_EQ(run_weft({"explain", model_, "--limit-rewrites", "rms_quant"}).status, 2);
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

}  // namespace weft::debugging_test
