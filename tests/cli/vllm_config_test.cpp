// vLLM's compilation configs, pasted whole: as JSON, as its log prints them, and as a file.

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tensor_file.h"
#include "base/files.h"
#include "builtin/models.h"
#include "options/custom_ops.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::vllm_config_test {

std::string config_file(const char* name) { return std::string(WEFT_TEST_DATA "/vllm_configs/") + name; }
std::string config_text(const char* name) { return read_file(config_file(name), 1 << 20); }

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class VllmConfig : public ::testing::Test {
 protected:
  ProgramRun run(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.begin() + 1, model_);
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  }

  nlohmann::json explain(const std::vector<std::string>& flags) {
    const ProgramRun outcome = run({"explain", "--json"}, flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(VllmConfig, IsPastedAsJsonAsALogPrintsItAndAsAFile) {
  const std::vector<std::string> complete{"complete", "-p", "abc", "-n", "4"};
  const std::string wanted = run(complete, {}).out;
  for (const char* name : {"config.json", "log.txt"}) {
    const ProgramRun as_text = run(complete, {"-cc", config_text(name)});
    EXPECT_EQ(as_text.status, 0) << as_text.err;
    EXPECT_EQ(as_text.out, wanted) << name;
    const ProgramRun as_file = run(complete, {"--compilation-config=" + config_file(name)});
    EXPECT_EQ(as_file.status, 0) << as_file.err;
    EXPECT_EQ(as_file.out, wanted) << name;
    EXPECT_EQ(run({"compile", "-o", folder_ / "m.weft"}, {"-cc", config_text(name)}).status, 0) << name;
    EXPECT_EQ(run({"complete", "-p", "abc", "-n", "1", "--enforce-eager"}, {"-cc", config_text(name)}).status, 0)
        << name;
  }
}

TEST_F(VllmConfig, RunsGraphs) {
  const std::string graph = folder_ / "g.graph";
  std::ofstream(graph) << "graph g(%x: f32[s0, 8]) stage=traced {\n  %a = silu_and_mul(%x)\n  return %a\n}\n";
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {3, 8}));
  for (int i = 0; i < 24; ++i) x.as<float>()[i] = 0.25f * static_cast<float>(i) - 2;
  write_results(folder_ / "in", {{"x", x}});
  const ProgramRun outcome = run_weft(
      {"graph", "run", graph, "--in", folder_ / "in", "--out", folder_ / "out", "-cc", config_text("config.json")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(VllmConfig, KeysAndOpsWithoutEffectAreListedOnce) {
  const ProgramRun outcome = run({"complete", "-p", "abc", "-n", "1"}, {"-cc", config_text("config.json")});
  for (const char* name :
       {"cc.compile_cache_save_format", "cc.ir_enable_torch_wrap", "cc.decoder_replay_trim_threshold",
        "cc.pass_config.fuse_act_padding", "cc.local_cache_dir", "-cc.custom_ops"})
    EXPECT_EQ(count_of(name, outcome.err), 1u) << name << "\n" << outcome.err;
  EXPECT_EQ(count_of("vllm::", outcome.err), 0u) << "all of its ops have a counterpart";
  const ProgramRun other = run({"complete", "-p", "abc", "-n", "1"}, {"-cc", config_text("log.txt")});
  EXPECT_EQ(count_of("vllm::kda_attention", other.err), 1u) << other.err;
  EXPECT_EQ(count_of("have no effect in this version", outcome.err), 1u) << outcome.err;
}

TEST_F(VllmConfig, UnknownKeysAndWrongValuesAreOneError) {
  const ProgramRun outcome = run_weft(
      {"info", "-cc",
       R"({"compile_cache_save_fromat": "binary", "mode": 9, "pass_config": {"fuse_norm_qant": true}, "q": 1})"});
  for (const char* part : {"did you mean \"cc.compile_cache_save_format\"?", "[cc.mode] wanted",
                           "did you mean \"cc.pass_config.fuse_norm_quant\"?", "\"cc.q\""})
    EXPECT_EQ(breach_of_refusal(outcome, part), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "-cc", "/nonexistent.json"}), "[cc] wanted a JSON object or a file"),
            "");
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "-cc", "{'mode': 3"}), "wanted JSON"), "");
}

TEST_F(VllmConfig, MisspeltSplittingOpsAreErrors) {
  const ProgramRun outcome = run_weft({"info", "-cc.splitting_ops=vllm::unified_atention,atention,vllm::mamba_mixer2"});
  for (const char* part :
       {"[cc.splitting_ops] ", "did you mean \"vllm::unified_attention\"?", "did you mean \"attention\"?"})
    EXPECT_EQ(breach_of_refusal(outcome, part), "");
}

// An op that no graph has changes neither the pieces nor the cache key.
TEST_F(VllmConfig, SplittingOpsWithoutCounterpartChangeNothing) {
  const nlohmann::json plain = explain({}),
                       given = explain({"-cc.splitting_ops=vllm::unified_attention_with_output,vllm::mamba_mixer2"});
  EXPECT_EQ(given["pieces"], plain["pieces"]);
  EXPECT_EQ(given["options"]["effective"]["cc.splitting_ops"], plain["options"]["effective"]["cc.splitting_ops"]);
}

// Layers that are off are native; linears, attention and the cache keep their kernels, and fusions stay.
TEST_F(VllmConfig, CustomOpsLeaveFusionsAndKernelsOfOtherOps) {
  const nlohmann::json plain = explain({}), none = explain({"-cc.custom_ops=[\"none\"]"});
  const auto nodes = [](const nlohmann::json& report) {
    std::vector<std::pair<std::string, std::string>> choices;
    for (const auto& node : report["nodes"])
      choices.emplace_back(node["op"].get<std::string>(), node["choices"][0]["provider"].get<std::string>());
    return choices;
  };
  const auto before = nodes(plain), after = nodes(none);
  ASSERT_EQ(before.size(), after.size());
  int kernels = 0, off = 0;
  const Words layers = layer_ops();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].first, before[i].first) << "a fusion is not made";
    const bool is_off = std::find(layers.begin(), layers.end(), before[i].first) != layers.end();
    EXPECT_EQ(after[i].second, is_off ? "native" : before[i].second) << before[i].first;
    off += is_off ? 1 : 0;
    kernels += after[i].second == "native" ? 0 : 1;
  }
  EXPECT_GT(off, 0);
  EXPECT_GT(kernels, 5);
}

}  // namespace weft::vllm_config_test
