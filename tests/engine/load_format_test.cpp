// --load-format dummy: the same graphs as of the weights themselves, without any of them.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "engine/open_checkpoint.h"
#include "ir/print.h"
#include "tests/engine/tiny_model.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::load_format_test {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;

class LoadFormat : public ::testing::Test {
 protected:
  static Options options_of(const Settings& given) {
    Options options;
    apply_environment(options, process_environment());
    for (const auto& [name, value] : given) set_option(options, name, value, "test");
    return options;
  }
  std::unique_ptr<Engine> engine(const std::string& path, Settings given = {}) const {
    given.emplace_back("load-format", "dummy");
    const Options options = options_of(given);
    return std::make_unique<Engine>(make_context(options), open_checkpoint(path, options, models_), models_);
  }
  // Both traced graphs, with the type of every weight.
  std::string graphs(const std::string& path, const std::string& load_format, Settings given = {}) const {
    given.insert(given.end(), {{"load-format", load_format}, {"compile-to", "traced"}});
    const Options options = options_of(given);
    const ModelRunner runner(make_context(options), open_checkpoint(path, options, models_), models_);
    return display(*runner.model().phases()[0].forward.traced) + display(*runner.model().phases()[0].head.traced);
  }
  std::string config_alone(const std::string& name, const json& changes) const {
    std::filesystem::create_directory(folder_ / name);
    json config = json::parse(models_.find("llama", "test").sample_config);
    config.update(changes);
    std::ofstream(folder_ / name + "/config.json") << config;
    return folder_ / name;
  }
  // The only files that a dummy needs.
  static void drop_weights(const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".safetensors") std::filesystem::remove(entry.path());
  }

  const TemporaryFolder folder_;
  const ModelRegistry models_ = make_model_registry();
};

TEST_F(LoadFormat, EveryModelTracesAsWithItsWeights) {
  for (const std::string& architecture : models_.architectures()) {
    const json changes{{"model_type", architecture}, {"torch_dtype", "bfloat16"}};
    const SampleCheckpoint sample(models_.find(architecture, "test"), changes);
    const std::string path = sample.write_folder(folder_, architecture, DType::bf16);
    const std::string wanted = graphs(path, "auto");
    drop_weights(path);
    EXPECT_EQ(graphs(path, "dummy"), wanted) << architecture;
    EXPECT_NE(graphs(path, "dummy", {{"dtype", "f16"}}), wanted) << architecture;
  }
}

TEST_F(LoadFormat, EveryNumberFormatTracesAsWithItsWeights) {
  const json changes{{"hidden_size", 128}, {"intermediate_size", 192}, {"torch_dtype", "bfloat16"}};
  const SampleCheckpoint sample(models_.find("llama", "test"), changes);
  const std::string plain = sample.write_folder(folder_, "plain", DType::bf16);
  std::ofstream(folder_ / "text") << "The sea is deep, and the boats go out at 5 in the morning.";
  for (const std::string format : {"fp8", "fp8-per-token", "fp8-block", "int8", "nvfp4"}) {
    const std::string path = folder_ / format;
    std::vector<std::string> words{"quantize", plain, "--format", format, "-o", path};
    if (format == "fp8-block") words.insert(words.end(), {"--block", "64x64"});
    if (format == "nvfp4") words.insert(words.end(), {"--calibrate", folder_ / "text"});
    ASSERT_EQ(run_weft(words).status, 0) << format;
    const std::string wanted = graphs(path, "auto");
    drop_weights(path);
    EXPECT_EQ(graphs(path, "dummy"), wanted) << format;
    // Every scale is finite, so that the results are, too.
    EXPECT_EQ(all_logits(*engine(path), some_ids(3)), std::vector(3, std::vector<float>(257, 0))) << format;
  }
}

// Without files the config alone says which modules are quantized: those of width 80 are not, in groups of 32. These
// files have plain weights in bf16, though the config states f32.
TEST_F(LoadFormat, FoldersOfMlxTraceAsWithTheirWeights) {
  for (const std::string name : {"mlx_llama_biases", "mlx_smollm3", "mlx_gpt_oss"}) {
    const std::string path = WEFT_TEST_DATA "/models/" + name;
    EXPECT_EQ(graphs(path, "dummy", {{"dtype", "bf16"}}), graphs(path, "auto", {{"dtype", "bf16"}})) << name;
  }
}

TEST_F(LoadFormat, OfAFileReadsNoWeight) {
  const std::string path = write_tiny_model(folder_);
  EXPECT_EQ(graphs(path, "dummy"), graphs(path, "auto"));
  EXPECT_EQ(all_logits(*engine(path), some_ids(5)), std::vector(5, std::vector<float>(257, 0)));
}

TEST_F(LoadFormat, TakesNoMemoryForWeights) {
  const std::string path = config_alone("wide", {{"hidden_size", 2048},
                                                 {"intermediate_size", 8192},
                                                 {"num_attention_heads", 32},
                                                 {"num_key_value_heads", 8},
                                                 {"vocab_size", 100'000},
                                                 {"num_hidden_layers", 4}});
  const auto resident_bytes = [] {
    std::int64_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  };
  constexpr std::int64_t kMegabyte = 1 << 20;
  const std::int64_t before = resident_bytes();
  const auto opened = engine(path);
  EXPECT_GT(opened->runner().memory_use().weights, 1000 * kMegabyte);
  EXPECT_LT(resident_bytes() - before, 250 * kMegabyte);
}

TEST_F(LoadFormat, WithoutATokenizerThereAreTokensAndNoText) {
  const std::string path = config_alone("config", json::object());
  const auto opened = engine(path);
  SamplingParameters parameters;
  parameters.max_tokens = 3;
  parameters.ignore_end = true;
  const Engine::Generation generation = opened->generate({1, 2}, parameters);
  EXPECT_EQ(generation.tokens, std::vector<int>(3, 0));
  EXPECT_EQ(generation.text, "");
  EXPECT_NE(message_of([&] { opened->tokenizer(); }).find(path), std::string::npos);

  std::ofstream(path + "/tokenizer.json") << SampleCheckpoint(models_.find("llama", "test")).tokenizer_json();
  EXPECT_EQ(engine(path)->tokenizer().encode("a").size(), 1u);
}

// Plans have no weights, so each format finds those of the other; their key has only the types.
TEST_F(LoadFormat, SharesItsPlansWithTheWeights) {
  const SampleCheckpoint sample(models_.find("llama", "test"), {{"torch_dtype", "bfloat16"}});
  const std::string path = sample.write_folder(folder_, "model", DType::bf16);
  const auto use_of = [&](const std::string& load_format, const std::string& dtype) {
    const Options options = options_of({{"load-format", load_format}, {"dtype", dtype}});
    const auto context = make_context(options);
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = folder_ / "cache"});
    return ModelRunner(context, open_checkpoint(path, options, models_), models_).model().cache_use();
  };
  const CacheUse first = use_of("auto", "auto"), second = use_of("dummy", "auto");
  ASSERT_TRUE(first.enabled);
  EXPECT_FALSE(first.hit);
  EXPECT_TRUE(second.hit);
  EXPECT_EQ(second.key, first.key);
  const CacheUse other = use_of("dummy", "f32");
  EXPECT_FALSE(other.hit);
  EXPECT_NE(other.key, first.key);
  EXPECT_TRUE(use_of("auto", "f32").hit);
}

TEST_F(LoadFormat, RefusesWhatNoModelIs) {
  const auto refusal = [&](const std::string& path) { return message_of([&] { engine(path); }); };
  EXPECT_NE(refusal(config_alone("other", {{"model_type", "rwkv7"}})).find("rwkv7"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "nothing").find("there is nothing"), std::string::npos);
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_NE(refusal(folder_ / "empty").find("config.json"), std::string::npos);
}

}  // namespace weft::load_format_test
