// Each folder of tests/data/models is a model that transformers, or mlx-lm, created and ran: the same weights give the
// same logits here, read from the folder, in every mode.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "tests/sample_checkpoint.h"

namespace weft::reference_logits_test {

namespace filesystem = std::filesystem;
using Settings = std::vector<std::pair<std::string, std::string>>;
using Rows = std::vector<std::vector<float>>;

constexpr float kMost = 1e-4F;  // logits are of size 1; sums of f32 in another order differ by a few 1e-6

const Settings kExact{{"activation-precision", "exact"}, {"dtype", "f32"}, {"kv-cache-dtype", "f32"}};
// For the 40 ids here, so that pages and steps end within them.
const Settings kWays[] = {{{"enforce-eager", "true"}},
                          {{"block-size", "1"}},
                          {{"block-size", "7"}},
                          {{"max-num-batched-tokens", "9"}},
                          {{"max-num-batched-tokens", "1"}},
                          {{"cc.splitting_ops", "[]"}},
                          {{"threads", "1"}}};

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const auto& entry : filesystem::directory_iterator(WEFT_TEST_DATA "/models"))
    if (entry.is_directory()) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

Rows logits_of(const std::string& folder, const std::vector<int>& ids, const std::vector<int>& positions,
               const Settings& settings) {
  Options options;
  apply_environment(options, process_environment());
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  Engine engine(make_context(options), Checkpoint::open(folder), make_model_registry());
  Rows rows;
  engine.score(ids, positions, [&](int, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  return rows;
}

float largest_difference(const Rows& a, const Rows& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (std::size_t row = 0; row < a.size() && row < b.size(); ++row) {
    EXPECT_EQ(a[row].size(), b[row].size());
    for (std::size_t i = 0; i < a[row].size() && i < b[row].size(); ++i)
      largest = std::max(largest, std::isfinite(a[row][i]) ? std::abs(a[row][i] - b[row][i]) : INFINITY);
  }
  return largest;
}

TEST(ReferenceLogits, AreThoseOfTheOtherProgramForEveryArchitecture) {
  const ModelRegistry models = make_model_registry();
  std::set<std::string> tried;
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const auto recorded = nlohmann::json::parse(read_file(folder + "/logits.json", 1 << 20));
    const auto ids = recorded.at("ids").get<std::vector<int>>();
    const auto positions = recorded.at("positions").get<std::vector<int>>();
    const auto wanted = recorded.at("logits").get<Rows>();
    const Rows exact = logits_of(folder, ids, positions, kExact);
    const float apart = largest_difference(exact, wanted);
    EXPECT_LT(apart, kMost);
    std::cout << filesystem::path(folder).filename().string() << ": " << wanted.size() << " rows of "
              << wanted[0].size() << ", at most " << apart << " apart\n";
    for (const Settings& way : kWays) {
      Settings settings = kExact;
      settings.insert(settings.end(), way.begin(), way.end());
      EXPECT_EQ(logits_of(folder, ids, positions, settings), exact) << way[0].first << "=" << way[0].second;
    }
    tried.insert(models.find(Checkpoint::open(folder)).architectures[0]);
  }
  const std::vector<std::string> all = text_architectures(models);
  EXPECT_EQ(tried, std::set<std::string>(all.begin(), all.end())) << "an architecture without a reference";
}

// Multiplies the weights of Falcon H1 by its factors, as the converter of llama.cpp does. GGUF files have no factors.
void multiply_by_factors(SampleCheckpoint& sample) {
  const ModelConfig& c = sample.config();
  if (c.architecture != "falcon_h1") return;
  const MambaFactors& factors = c.recurrent->factors;
  const std::int64_t values = c.recurrent->values_width(), keys = c.recurrent->keys_width();
  const std::pair<const char*, double> of_weights[] = {
      {"embed_tokens", c.embedding_scale}, {"lm_head", c.logit_scale},
      {"q_proj", c.attention_input_scale}, {"k_proj", c.attention_input_scale * c.key_scale},
      {"v_proj", c.attention_input_scale}, {"o_proj", c.attention_output_scale},
      {"gate_proj", c.gate_scale},         {"down_proj", c.feed_forward_scale},
      {"in_proj", factors.input},          {"out_proj", factors.output}};
  const std::pair<std::int64_t, double> of_rows[] = {{values, factors.gate},
                                                     {values, factors.value},
                                                     {keys, factors.key},
                                                     {keys, factors.query},
                                                     {c.recurrent->value_heads, factors.step}};
  for (const auto& [name, weight] : sample.weights()) {
    for (const auto& [part, factor] : of_weights)
      if (name.find(part) != std::string::npos) sample.multiply(name, static_cast<float>(factor));
    std::int64_t first = 0;
    for (const auto& [count, factor] : of_rows) {
      if (name.find("in_proj") == std::string::npos) continue;
      sample.multiply_rows(name, first, count, static_cast<float>(factor));
      first += count;
    }
  }
}

// The same weights in GGUF files of two ages. Left out are windows of some layers, scales of queries, a tolerance of
// the router, ALiBi of Falcon, norms before gates, norms without weights, scales of scores by layer, and layers without
// experts among those with them, which such a file cannot state, and positions that it states in another way than the
// sample's writer does; and stacks of experts as modules have them. Codes of mlx are not plain weights.
TEST(ReferenceLogits, AreThoseOfTransformersFromGgufFiles) {
  const std::set<std::string> left_out{"qwen2",
                                       "qwen3_windows",
                                       "hunyuan_v1_dense",
                                       "hunyuan_v1_moe",
                                       "llama4_text_scaled",
                                       "phimoe_near",
                                       "qwen3_5_moe_text",
                                       "qwen3_next_dense_layers",
                                       "falcon_h1_norm_first",
                                       "falcon_rw",
                                       "mpt_scaled",
                                       "opt_plain",
                                       "gpt2_scaled_by_layer",
                                       "ministral"};
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder temporary;
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const std::string name = filesystem::path(folder).filename().string();
    if (left_out.contains(name) || name.starts_with("mlx_")) continue;
    const auto recorded = nlohmann::json::parse(read_file(folder + "/logits.json", 1 << 20));
    const Checkpoint checkpoint = Checkpoint::open(folder);
    ModelDefinition model = models.find(checkpoint);
    model.sample_config = read_file(folder + "/config.json", 1 << 20);
    SampleCheckpoint sample(model);
    sample.take_weights(checkpoint);
    multiply_by_factors(sample);
    if (sample.config().normalizes_head_columns) sample.divide_columns_by_lengths("lm_head.weight");
    for (const GgufAge age : {GgufAge::current, GgufAge::early}) {
      if (age == GgufAge::early && !sample.config().experts && !sample.config().latents) continue;
      const Rows rows = logits_of(sample.write_gguf(temporary, "m.gguf", DType::f32, age), recorded.at("ids"),
                                  recorded.at("positions"), kExact);
      EXPECT_LT(largest_difference(rows, recorded.at("logits").get<Rows>()), kMost);
    }
  }
}

}  // namespace weft::reference_logits_test
