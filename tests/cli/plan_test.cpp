// weft plan: the same compiler and the same bytes as of a model that is loaded, without its weights.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::plan_test {

using Words = std::vector<std::string>;
using nlohmann::json;

class PlanVerb : public ::testing::Test {
 protected:
  json report(Words words) const {
    words.push_back("--json");
    const ProgramRun run = run_weft(words);
    EXPECT_EQ(run.status, 0) << words[0] << " " << words[1] << ": " << run.err;
    return run.status == 0 ? json::parse(run.out) : json::object();
  }
  // With rates, so that none is measured.
  json plan(const std::string& model, const Words& more = {}) const {
    Words words{"plan", model, "--bandwidth", "10", "--flops", "100"};
    words.insert(words.end(), more.begin(), more.end());
    return report(words);
  }
  // Compares with explain, which loads the weights.
  void expect_as_explained(const std::string& model, const Words& more = {}) const {
    Words words{"explain", model};
    words.insert(words.end(), more.begin(), more.end());
    const json planned = plan(model, more), explained = report(words);
    ASSERT_TRUE(planned.contains("graphs") && explained.contains("passes")) << model;
    for (const char* part : {"weights", "kv_cache", "activations_planned"})
      EXPECT_EQ(planned["memory"][part], explained["memory"][part]) << model << ": " << part;
    std::map<std::string, int> choices, fusions;
    for (const json& graph : planned["graphs"]) {
      const std::string of = graph["graph"].get<std::string>() + graph["range"].dump();
      for (const json& choice : graph["choices"])
        choices[of + choice["op"].get<std::string>() + "@" + choice["provider"].get<std::string>()] +=
            choice["count"].get<int>();
      for (const json& fusion : graph["fusions"])
        fusions[of + fusion["pattern"].get<std::string>()] += fusion["matched"].get<int>();
    }
    EXPECT_EQ(choices, explained_choices(explained)) << model;
    EXPECT_EQ(fusions, explained_fusions(explained)) << model;
  }

  static std::map<std::string, int> explained_choices(const json& explained) {
    std::map<std::string, int> counts;
    for (const json& node : explained["nodes"])
      for (const json& choice : node["choices"])
        ++counts[node["graph"].get<std::string>() + choice["range"].dump() + node["op"].get<std::string>() + "@" +
                 choice["provider"].get<std::string>()];
    return counts;
  }
  static std::map<std::string, int> explained_fusions(const json& explained) {
    std::map<std::string, int> counts;
    for (const json& pass : explained["passes"])
      for (const json& pattern : pass["patterns"])
        if (pattern["matched"] != 0)
          counts[pass["graph"].get<std::string>() + pass["range"].dump() + pattern["pattern"].get<std::string>()] +=
              pattern["matched"].get<int>();
    return counts;
  }
  std::string config_alone(const std::string& name, const json& changes = json::object()) const {
    std::filesystem::create_directory(folder_ / name);
    std::ofstream(folder_ / name + "/config.json")
        << SampleCheckpoint(models_.find("llama", "test"), changes).config_json();
    return folder_ / name;
  }

  const TemporaryFolder folder_;
  const ModelRegistry models_ = make_model_registry();
};

TEST_F(PlanVerb, EveryArchitectureIsPlannedAsItIsLoaded) {
  for (const std::string& architecture : models_.architectures()) {
    const json changes{{"model_type", architecture}, {"torch_dtype", "bfloat16"}};
    const SampleCheckpoint sample(models_.find(architecture, "test"), changes);
    const std::string path = sample.write_folder(folder_, architecture, DType::bf16);
    expect_as_explained(path);
    const json with_weights = plan(path), without = plan(path, {"--load-format", "dummy"});
    EXPECT_EQ(with_weights["weights_from"], "checkpoint");
    EXPECT_EQ(without["weights_from"], "config");
    for (const char* part : {"graphs", "memory", "decode", "prompt"})
      EXPECT_EQ(without[part], with_weights[part]) << part;
    plan(path, {"--device", "fake-cuda"});  // whose fusions are others
  }
}

TEST_F(PlanVerb, EveryNumberFormatIsPlannedAsItIsLoaded) {
  const SampleCheckpoint sample(models_.find("llama", "test"),
                                {{"hidden_size", 128}, {"intermediate_size", 192}, {"torch_dtype", "bfloat16"}});
  for (const DType dtype : {DType::f32, DType::f16, DType::q8_0, DType::q4_1})
    expect_as_explained(sample.write_gguf(folder_, "m" + std::string(dtype_text(dtype)) + ".gguf", dtype));
  const SampleCheckpoint wide(models_.find("llama", "test"), {{"hidden_size", 256}, {"intermediate_size", 512}});
  for (const DType dtype : {DType::q4_k, DType::iq2_xxs})
    expect_as_explained(wide.write_gguf(folder_, "m" + std::string(dtype_text(dtype)) + ".gguf", dtype));
  const std::string plain = sample.write_folder(folder_, "plain", DType::bf16);
  std::ofstream(folder_ / "text") << "The sea is deep, and the boats go out at 5 in the morning.";
  for (const std::string format : {"fp8", "fp8-per-token", "fp8-block", "int8", "nvfp4"}) {
    Words words{"quantize", plain, "--format", format, "-o", folder_ / format};
    if (format == "fp8-block") words.insert(words.end(), {"--block", "64x64"});
    if (format == "nvfp4") words.insert(words.end(), {"--calibrate", folder_ / "text"});
    ASSERT_EQ(run_weft(words).status, 0) << format;
    expect_as_explained(folder_ / format);
  }
}

TEST_F(PlanVerb, OptionsAndDevicesCountAsForEveryVerb) {
  const std::string path = SampleCheckpoint(models_.find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
  expect_as_explained(path, {"--activation-precision", "exact"});
  expect_as_explained(path, {"--cc.pass_config.fuse_norm_quant=false"});
  expect_as_explained(path, {"-cc.compile_sizes=[1,4]", "--max-num-batched-tokens", "16"});
  expect_as_explained(path, {"--device", "fake-cuda"});
  const json eager = plan(path, {"--enforce-eager"}), compiled = plan(path);
  EXPECT_EQ(eager["graphs"], json::array());
  EXPECT_EQ(eager["memory"]["weights"], compiled["memory"]["weights"]);
  EXPECT_EQ(eager["decode"]["bytes"]["weights"], compiled["decode"]["bytes"]["weights"]);
  EXPECT_EQ(eager["prompt"]["operations"], compiled["prompt"]["operations"]);
  for (const char* target : {"baseline", "avx2", "bf16"}) {
    const json planned = plan(path, {"--target", std::string("cpu=") + target});
    EXPECT_EQ(planned["target"]["cpu_features"], target);
    EXPECT_EQ(planned["decode"]["operations"], compiled["decode"]["operations"]);
  }
}

TEST_F(PlanVerb, AConfigIsEnough) {
  const std::string folder = config_alone("model");
  const json of_folder = plan(folder), of_file = plan(folder + "/config.json");
  EXPECT_EQ(of_folder["weights_from"], "config");
  EXPECT_GT(of_folder["memory"]["weights"], 100'000);
  for (const char* part : {"graphs", "memory", "decode", "prompt"}) EXPECT_EQ(of_file[part], of_folder[part]) << part;
  std::filesystem::rename(folder + "/config.json", folder_ / "other-name.json");
  EXPECT_EQ(plan(folder_ / "other-name.json")["memory"], of_folder["memory"]);
}

TEST_F(PlanVerb, BytesAndOperationsAreThoseOfTheShape) {
  const SampleCheckpoint sample(models_.find("llama", "test"));
  const ModelConfig& config = sample.config();
  const std::string path = sample.write_folder(folder_, "f32", DType::f32);
  constexpr std::int64_t kDepth = 9;
  const json planned = plan(path, {"-d", std::to_string(kDepth), "--max-num-batched-tokens", "8", "--dtype", "f32",
                                   "--ir-op-priority.linear=reference", "--kv-cache-dtype", "f32"});
  std::int64_t elements = 0, multiplied = 0, table = 0;
  for (const auto& [name, tensor] : sample.weights()) {
    const std::int64_t count = element_count(tensor.meta.shape).number();
    const bool is_table = name.find("embed_tokens") != std::string::npos;
    if (is_table) table = tensor.meta.shape[1].number();
    if (!is_table) elements += count;
    if (!is_table && tensor.meta.rank() == 2) multiplied += count;
  }
  const std::int64_t token = config.layer_count * 2 * config.kv_head_count * config.head_dim * 4;
  const json& decode = planned["decode"];
  EXPECT_EQ(decode["bytes"]["weights"], 4 * (elements + table + config.rope.rotary_dim));
  EXPECT_EQ(decode["bytes"]["kv_cache_read"], kDepth * token);
  EXPECT_EQ(decode["bytes"]["kv_cache_written"], token);
  EXPECT_EQ(decode["operations"]["products"], 2 * multiplied);
  const std::int64_t width = config.head_count * config.head_dim;
  EXPECT_EQ(decode["operations"]["attention"], config.layer_count * 4 * (kDepth + 1) * width);
  EXPECT_EQ(planned["memory"]["kv_cache_per_token"], token);
  const json& prompt = planned["prompt"];
  EXPECT_EQ(prompt["rows"], 8);
  EXPECT_EQ(prompt["operations_per_token"], prompt["operations"]["total"].get<double>() / 8);
  // 10 GB/s and 100 GFLOP/s
  const double seconds =
      std::max(decode["bytes"]["total"].get<double>() / 10e9, decode["operations"]["total"].get<double>() / 100e9);
  EXPECT_NEAR(decode["tokens_per_second"].get<double>(), 1 / seconds, 1e-6 / seconds);
  EXPECT_EQ(decode["limit"], "bandwidth");
}

TEST_F(PlanVerb, LatentsAreCachedOnce) {
  const SampleCheckpoint sample(models_.find("deepseek_v3", "test"));
  const ModelConfig& config = sample.config();
  const json planned =
      plan(sample.write_folder(folder_, "latents", DType::bf16), {"-d", "9", "--kv-cache-dtype", "f16"});
  const std::int64_t token = config.layer_count * 2 * (config.latents->rank + config.latents->rotary_dim);
  EXPECT_EQ(planned["memory"]["kv_cache_per_token"], token);
  EXPECT_EQ(planned["decode"]["bytes"]["kv_cache_read"], 9 * token);
  EXPECT_EQ(planned["decode"]["bytes"]["kv_cache_written"], token);
}

TEST_F(PlanVerb, SaysWhereThePeakRatesComeFrom) {
  const std::string path = config_alone("model");
  const json given = plan(path)["peak_rates"];
  EXPECT_EQ(given["bytes"]["source"], "given");
  EXPECT_EQ(given["bytes"]["per_second"], 10e9);
  EXPECT_EQ(given["operations"]["per_second"], 100e9);
  EXPECT_EQ(given["speedup_of_8_bits"], 1);
  const json measured = report({"plan", path, "--bandwidth", "10"})["peak_rates"];
  EXPECT_EQ(measured["bytes"]["source"], "given");
  EXPECT_NE(measured["operations"]["source"].get<std::string>().find("measured"), std::string::npos);
  EXPECT_GT(measured["operations"]["per_second"], 0);
  EXPECT_EQ(measured["operations_of_8_bits"]["source"], "measured");
  EXPECT_GT(measured["operations_of_8_bits"]["per_second"], 0);
  const json of_device = report({"plan", path, "--device", "fake-cuda"});
  EXPECT_EQ(of_device["peak_rates"]["bytes"]["per_second"], nullptr);
  EXPECT_EQ(of_device["decode"]["tokens_per_second"], nullptr);
  EXPECT_EQ(of_device["decode"]["limit"], nullptr);
  const ProgramRun text = run_weft({"plan", path, "--bandwidth", "10", "--flops", "100"});
  for (const char* part : {"(given)", "tokens/s", "kernels", "fusions", "memory: at most"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
}

TEST_F(PlanVerb, TakesNoMemoryForWeights) {
  const std::string path = folder_ / "wide.json";
  std::filesystem::rename(config_alone("wide") + "/config.json", path);
  json config = json::parse(std::ifstream(path));
  config.update({{"hidden_size", 4096},
                 {"intermediate_size", 14336},
                 {"num_attention_heads", 32},
                 {"num_key_value_heads", 8},
                 {"vocab_size", 128'256},
                 {"num_hidden_layers", 32}});
  std::ofstream(path) << config;
  const auto resident_bytes = [] {
    std::int64_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  };
  const std::int64_t before = resident_bytes();
  EXPECT_GT(plan(path)["memory"]["weights"], std::int64_t{15} << 30);
  EXPECT_LT(resident_bytes() - before, 250 << 20);
}

TEST_F(PlanVerb, RefusesWhatItCannotPlan) {
  const std::string path = config_alone("model");
  const auto breach = [&](const Words& more, const std::string& part) {
    Words words{"plan", path};
    words.insert(words.end(), more.begin(), more.end());
    return breach_of_refusal(run_weft(words), part);
  };
  EXPECT_EQ(breach({"--target", "gpu"}, "[--target]"), "");
  EXPECT_EQ(breach({"--target", "cpu=zen"}, "[--target]"), "");
  EXPECT_EQ(breach({"--bandwidth", "0"}, "[--bandwidth]"), "");
  EXPECT_EQ(breach({"--flops", "fast"}, "[--flops]"), "");
  EXPECT_EQ(breach({"-d", "-1"}, "[--n-depth]"), "");
  EXPECT_EQ(breach({"-d", "1g"}, "[--n-depth]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"plan", folder_ / "nothing"}), "there is nothing"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"plan", folder_ / ""}), "config.json"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"explain", path + "/config.json"}), "--load-format dummy"), "");
  std::ofstream(folder_ / "broken.json") << "{\"model_type\": ";
  EXPECT_EQ(breach_of_refusal(run_weft({"plan", folder_ / "broken.json"}), "broken.json"), "");
}

}  // namespace weft::plan_test
