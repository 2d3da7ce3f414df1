// Every architecture of the registry, as a tiny checkpoint of random weights made from its sample config: its answers
// do not depend on the stored format, the mode of execution or the instruction set.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/end_to_end/ceilings.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/test_context.h"

namespace weft::every_model_test {

using Words = std::vector<std::string>;

constexpr int kTokens = 16;

// Orders of running that give the same bits.
const Words kEager = {"--enforce-eager"};
const Words kWays[] = {{"--expect-fusions=all"},
                       {"-cc.pass_config.fuse_norm_quant=false"},
                       {"-cc.pass_config.fuse_act_quant=false"},
                       {"-cc.pass_config.fuse_rope_kvcache=false"},
                       {"-cc.pass_config.fuse_qk_norm_rope_kvcache=false"},
                       kEager,
                       {"-O0"},
                       {"-cc.splitting_ops=[]"},
                       {"--compile-to=traced"},
                       {"--compile-to=pure"},
                       {"--compile-to=lowered"},
                       {"--compile-to=split"},
                       {"--skip-pass=noop_elimination"},
                       {"--skip-pass=common_subexpression_elimination"},
                       {"--skip-pass=dead_code_elimination"}};

// Greedy token ids after a short prompt; only the ids, because the text of random models is often no text. With a
// folder `cache`, compiled code is not compiled again.
std::vector<int> greedy_ids(const std::string& path, const Words& more, const std::string& ceiling = "bf16",
                            const std::string& cache = "") {
  Words words{"complete", path, "-p",           "The sea", "-n", std::to_string(kTokens),
              "--temp",   "0",  "--ignore-eos", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  std::map<std::string, std::string> environment{{"WEFT_CPU_FEATURES", ceiling}};
  if (!cache.empty()) environment["WEFT_CACHE_ROOT"] = cache;
  const ProgramRun run = run_weft(words, "", environment);
  EXPECT_EQ(run.status, 0) << run.err;
  if (run.status != 0) return {};
  return nlohmann::json::parse(run.out).at("tokens").get<std::vector<int>>();
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class EveryModel : public ::testing::Test {
 protected:
  // Calls `body` for each architecture with the sample checkpoint's parts that a case may change.
  void for_each(const std::function<void(const SampleCheckpoint& sample)>& body) const {
    int models = 0;
    for (const std::string& architecture : text_architectures(models_))
      for (const bool tied : {false, true}) {
        if (tied && architecture != "llama") continue;  // the head is the same code for all
        SCOPED_TRACE(architecture + (tied ? ", the head tied to the embedding" : ""));
        const nlohmann::json changes{{"model_type", architecture}, {"tie_word_embeddings", tied}};
        body(SampleCheckpoint(models_.find(architecture, "test"), changes, 13));
        ++models;
      }
    EXPECT_GE(models, 2);
    std::cout << "models: " << models << "\n";
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(EveryModel, GivesTheSameIdsFromEveryKindOfFile) {
  for_each([&](const SampleCheckpoint& sample) {
    const Words exact{"--activation-precision", "exact", "--dtype", "f32"};
    const std::vector<int> wanted = greedy_ids(sample.write_gguf(folder_, "f32.gguf", DType::f32), exact);
    ASSERT_EQ(wanted.size(), static_cast<std::size_t>(kTokens));
    EXPECT_GT(std::set<int>(wanted.begin(), wanted.end()).size(), 2u) << "an answer that says little";
    int files = 0;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const std::string name(dtype_text(dtype));
      EXPECT_EQ(greedy_ids(sample.write_gguf(folder_, name + ".gguf", dtype), exact), wanted) << name;
      for (const int parts : {1, 3}) {
        const std::string folder = fmt::format("{}-{}-{}", name, parts, sample.config().tie_word_embeddings);
        EXPECT_EQ(greedy_ids(sample.write_folder(folder_, folder, dtype, parts), exact), wanted) << folder;
        ++files;
      }
    }
    EXPECT_EQ(files, 6);
  });
}

TEST_F(EveryModel, GivesTheSameIdsFromBlocksAsFromTheirValues) {
  for_each([&](const SampleCheckpoint& sample) {
    for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_1}) {
      SampleCheckpoint rounded = sample;
      rounded.round_matrices_to(dtype);
      const Words exact{"--activation-precision", "exact"};
      EXPECT_EQ(greedy_ids(sample.write_gguf(folder_, "blocks.gguf", dtype), exact),
                greedy_ids(rounded.write_gguf(folder_, "values.gguf", DType::f32), exact))
          << dtype_text(dtype);
    }
  });
}

// If a higher level has vectors of the same width, passes and generated code are the same and only kernels differ: then
// only eager mode is tested. Most of their functions are the same, and each is compiled once. All number formats run
// with Llama alone: another architecture has the same products.
TEST_F(EveryModel, GivesTheSameIdsHoweverItIsRun) {
  const Words with_every_way = vector_features_to_try();
  const std::string cache = folder_ / "cache";
  int runs = 0;
  for_each([&](const SampleCheckpoint& sample) {
    std::vector<DType> dtypes{DType::q4_1};
    if (sample.config().architecture == "llama") dtypes.insert(dtypes.end(), {DType::q8_0, DType::bf16});
    for (const DType dtype : dtypes) {
      const std::string path = sample.write_gguf(folder_, std::string(dtype_text(dtype)) + ".gguf", dtype);
      for (const std::string& ceiling : host_ceilings())
        for (const Words& precision : {Words{}, Words{"--activation-precision", "exact"}}) {
          const std::vector<int> wanted = greedy_ids(path, precision, ceiling, cache);
          const bool has_every_way = std::count(with_every_way.begin(), with_every_way.end(), ceiling) > 0;
          for (const Words& way : kWays) {
            if (!has_every_way && way != kEager) continue;
            EXPECT_EQ(greedy_ids(path, with(precision, way), ceiling, cache), wanted)
                << path << " " << ceiling << " " << (way.empty() ? "" : way[0]);
            ++runs;
          }
        }
    }
  });
  std::cout << "runs: " << runs << ", ceilings: " << host_ceilings().size() << "\n";
}

TEST_F(EveryModel, GivesTheSameIdsOnEveryInstructionSetInExactMode) {
  for_each([&](const SampleCheckpoint& sample) {
    for (const DType dtype : {DType::f32, DType::q8_0, DType::q4_1}) {
      const std::string path = sample.write_gguf(folder_, "m.gguf", dtype);
      const Words exact{"--activation-precision", "exact"};
      const std::vector<int> wanted = greedy_ids(path, exact, "baseline");
      for (const std::string& ceiling : all_ceilings()) EXPECT_EQ(greedy_ids(path, exact, ceiling), wanted) << ceiling;
    }
  });
}

TEST_F(EveryModel, RunsInEveryDtypeOfTheResidualStream) {
  for_each([&](const SampleCheckpoint& sample) {
    const std::string path = sample.write_folder(folder_, "bf16", DType::bf16);
    for (const char* dtype : {"f32", "f16", "bf16"})
      for (const char* pages : {"f32", "f16", "bf16", "fp8"}) {
        const Words words{"--dtype", dtype, "--kv-cache-dtype", pages};
        const std::vector<int> compiled = greedy_ids(path, words);
        EXPECT_EQ(compiled.size(), static_cast<std::size_t>(kTokens));
        EXPECT_EQ(greedy_ids(path, with(words, {"--enforce-eager"})), compiled) << dtype << " " << pages;
      }
    std::filesystem::remove_all(path);
  });
}

}  // namespace weft::every_model_test
