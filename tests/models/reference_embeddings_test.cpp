// Each folder of tests/data/encoders is an encoder that transformers created and ran: the same weights give the same
// pooled hidden states here, or the same scores of pairs, in every mode, whatever else is in the step.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "tests/sample_checkpoint.h"

namespace weft::reference_embeddings_test {

namespace filesystem = std::filesystem;
using Settings = std::vector<std::pair<std::string, std::string>>;
using Embeddings = std::vector<std::vector<float>>;

constexpr float kMost = 1e-4F;  // hidden states are of size 1; sums of f32 in another order differ by a few 1e-6

const Settings kExact{{"activation-precision", "exact"}, {"dtype", "f32"}, {"kv-cache-dtype", "f32"}};
// A step has a whole text, whatever is asked for.
const Settings kWays[] = {{{"enforce-eager", "true"}},
                          {{"block-size", "1"}},
                          {{"block-size", "7"}},
                          {{"max-num-batched-tokens", "9"}},
                          {{"long-prefill-token-threshold", "3"}},
                          {{"cc.splitting_ops", "[]"}},
                          {{"threads", "1"}}};

// Those with this file.
std::vector<std::string> folders(const char* recorded = "embeddings.json") {
  std::vector<std::string> found;
  for (const auto& entry : filesystem::directory_iterator(WEFT_TEST_DATA "/encoders"))
    if (filesystem::exists(entry.path() / recorded)) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

struct Recorded {
  explicit Recorded(const std::string& folder)
      : json(nlohmann::json::parse(read_file(folder + "/embeddings.json", 1 << 20))) {
    const auto ids = json.at("ids").get<std::vector<int>>();
    for (const auto& text : json.at("texts"))
      texts.emplace_back(ids.begin(), ids.begin() + text.at("length").get<int>());
  }
  Embeddings embeddings(Pooling pooling) const {
    Embeddings all;
    for (const auto& text : json.at("texts"))
      all.push_back(text.at(std::string(pooling_text(pooling))).get<std::vector<float>>());
    return all;
  }
  nlohmann::json json;
  std::vector<std::vector<int>> texts;
};

std::unique_ptr<Engine> engine_of(const std::string& path, const Settings& settings) {
  Options options;
  apply_environment(options, process_environment());
  for (const auto& [name, value] : kExact) set_option(options, name, value, "test");
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  return std::make_unique<Engine>(make_context(options), Checkpoint::open(path), make_model_registry());
}

Embeddings one_by_one(Engine& engine, const Recorded& recorded, Pooling pooling) {
  Embeddings all;
  for (const std::vector<int>& text : recorded.texts) all.push_back(engine.embed(text, pooling));
  return all;
}

// All texts wait at once, so that steps have several of them.
Embeddings together(Engine& engine, const Recorded& recorded, Pooling pooling) {
  std::map<int, std::size_t> requests;
  for (const std::vector<int>& text : recorded.texts) {
    const int id = engine.add({.prompt = std::make_shared<const std::vector<int>>(text),
                               .parameters = {.max_tokens = 1},
                               .pooling = pooling});
    requests[id] = requests.size();
  }
  Embeddings all(recorded.texts.size());
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) {
      EXPECT_EQ(event.finished, FinishReason::stop) << event.error;
      if (event.embedding != nullptr) all[requests.at(event.request)] = *event.embedding;
    }
  return all;
}

float largest_difference(const Embeddings& a, const Embeddings& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (std::size_t text = 0; text < a.size() && text < b.size(); ++text) {
    EXPECT_EQ(a[text].size(), b[text].size());
    for (std::size_t i = 0; i < a[text].size() && i < b[text].size(); ++i)
      largest = std::max(largest, std::isfinite(a[text][i]) ? std::abs(a[text][i] - b[text][i]) : INFINITY);
  }
  return largest;
}

TEST(ReferenceEmbeddings, AreThoseOfTransformersForEveryEncoder) {
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const Recorded recorded(folder);
    const auto engine = engine_of(folder, {});
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
      SCOPED_TRACE(pooling_text(pooling));
      const Embeddings exact = one_by_one(*engine, recorded, pooling);
      EXPECT_LT(largest_difference(exact, recorded.embeddings(pooling)), kMost);
      EXPECT_EQ(together(*engine, recorded, pooling), exact);
    }
    const Embeddings exact = one_by_one(*engine, recorded, Pooling::mean);
    for (const Settings& way : kWays) {
      const auto other = engine_of(folder, way);
      EXPECT_EQ(one_by_one(*other, recorded, Pooling::mean), exact) << way[0].first << "=" << way[0].second;
      EXPECT_EQ(together(*other, recorded, Pooling::mean), exact) << way[0].first << "=" << way[0].second;
    }
  }
}

TEST(ReferenceEmbeddings, AreThoseOfTransformersFromGgufFiles) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder temporary;
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const std::string name = filesystem::path(folder).filename().string();
    if (name == "distilbert" || name == "electra" || name == "albert") continue;  // llama.cpp has no such architecture
    const Recorded recorded(folder);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    ModelDefinition model = models.find(checkpoint);
    model.sample_config = read_file(folder + "/config.json", 1 << 20);
    SampleCheckpoint sample(model);
    sample.take_weights(checkpoint);
    const auto engine = engine_of(sample.write_gguf(temporary, "m.gguf", DType::f32), {});
    EXPECT_LT(largest_difference(one_by_one(*engine, recorded, Pooling::mean), recorded.embeddings(Pooling::mean)),
              kMost);
  }
}

TEST(ReferenceEmbeddings, AreThereForEveryEncoder) {
  const ModelRegistry models = make_model_registry();
  std::set<std::string> tried, encoders;
  for (const std::string& folder : folders()) tried.insert(models.find(Checkpoint::open(folder)).architectures[0]);
  for (const std::string& architecture : models.architectures())
    if (models.find(architecture, "test").facts.bidirectional != Bidirectional::never) encoders.insert(architecture);
  EXPECT_EQ(tried, encoders) << "an encoder without a reference";
}

// The layers of the head, as embedding_head_of() reads it.
std::vector<ScoreLayer> score_layers(const ModelDefinition& model) {
  return model.facts.score_layers.empty() ? std::vector<ScoreLayer>{{"score"}} : model.facts.score_layers;
}

// The pairs of a folder and their logits, in every way that is given.
void check_scores(const std::string& path, const nlohmann::json& recorded, const Settings& way) {
  const auto ids = recorded.at("ids").get<std::vector<int>>();
  const auto engine = engine_of(path, way);
  const EmbeddingHead head = engine->embedding_head();
  std::map<int, double> wanted;
  for (const auto& pair : recorded.at("pairs")) {
    const std::vector<int> text(ids.begin(), ids.begin() + pair.at("length").get<int>());
    const int id = engine->add({.prompt = std::make_shared<const std::vector<int>>(text),
                                .parameters = {.max_tokens = 1},
                                .pooling = head.pooling,
                                .second_text = pair.at("second")});
    wanted[id] = pair.at("logit");
  }
  while (!engine->is_idle())
    for (const RequestEvent& event : engine->step()) {
      ASSERT_NE(event.embedding, nullptr) << event.error;
      EXPECT_NEAR(finished_score(head, *event.embedding, false), wanted.at(event.request), kMost);
      wanted.erase(event.request);
    }
  EXPECT_TRUE(wanted.empty());
}

// Of bert, tokens of the second text have another type.
TEST(ReferenceEmbeddings, ScoresArePairsOfTransformers) {
  const ModelRegistry models = make_model_registry();
  std::set<std::string> tried, scoring;
  for (const std::string& folder : folders("scores.json")) {
    SCOPED_TRACE(folder);
    const auto recorded = nlohmann::json::parse(read_file(folder + "/scores.json", 1 << 20));
    tried.insert(models.find(Checkpoint::open(folder)).architectures[0]);
    for (const Settings& way : {Settings{}, Settings{{"enforce-eager", "true"}}, Settings{{"pad-steps", "true"}}})
      check_scores(folder, recorded, way);
  }
  // Decoders have one head for all.
  scoring = {"gemma", "llama", "mistral", "qwen2", "qwen3"};
  for (const std::string& architecture : models.architectures())
    if (!models.find(architecture, "test").facts.score_layers.empty()) scoring.insert(architecture);
  EXPECT_EQ(tried, scoring) << "a head that scores texts without a reference";
}

// The head's tensors have llama.cpp's names.
TEST(ReferenceEmbeddings, ScoresAreThoseOfTransformersFromGgufFiles) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder temporary;
  for (const char* name : {"xlm_roberta_scores", "modernbert_scores", "bert_scores", "qwen3_scores"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string(WEFT_TEST_DATA "/encoders/") + name;
    const Checkpoint checkpoint = Checkpoint::open(folder);
    ModelDefinition model = models.find(checkpoint);
    model.sample_config = read_file(folder + "/config.json", 1 << 20);
    SampleCheckpoint sample(model);
    const auto add = [&](const std::string& own, const std::string& gguf) {
      for (const char* part : {".weight", ".bias"})
        if (const TensorEntry* entry = checkpoint.find(own + part)) {
          std::vector<std::int64_t> shape;
          for (const Dim& dim : entry->tensor.meta.shape) shape.push_back(dim.number());
          sample.add(own + part, gguf + part, shape);
        }
    };
    const std::vector<ScoreLayer> layers = score_layers(model);
    for (const ScoreLayer& layer : layers) {
      add(std::string(layer.module), &layer == &layers.back() ? "cls.output" : "cls");
      if (!layer.norm.empty()) add(std::string(layer.norm), "cls.norm");
    }
    sample.take_weights(checkpoint);
    check_scores(sample.write_gguf(temporary, "m.gguf", DType::f32),
                 nlohmann::json::parse(read_file(folder + "/scores.json", 1 << 20)), {});
  }
}

TEST(ReferenceEmbeddings, ClassesHaveTheProbabilitiesOfTransformers) {
  const std::vector<std::string> all = folders("classes.json");
  EXPECT_EQ(all.size(), 3U);
  for (const std::string& folder : all) {
    SCOPED_TRACE(folder);
    const auto recorded = nlohmann::json::parse(read_file(folder + "/classes.json", 1 << 20));
    const auto ids = recorded.at("ids").get<std::vector<int>>();
    const auto engine = engine_of(folder, {});
    const EmbeddingHead head = engine->embedding_head();
    EXPECT_EQ(head.labels, recorded.at("labels").get<std::vector<std::string>>());
    for (const auto& text : recorded.at("texts")) {
      const std::vector<int> own(ids.begin(), ids.begin() + text.at("length").get<int>());
      const std::vector<double> classes = finished_classes(head, engine->embed(own, *head.pooling), true);
      const auto wanted = text.at("probabilities").get<std::vector<double>>();
      ASSERT_EQ(classes.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(classes[i], wanted[i], kMost);
    }
    EXPECT_THROW(engine->add({5, 6, 7}, {.max_tokens = 1}), UserError);
  }
}

// No token can be predicted from tokens that attend to it.
TEST(ReferenceEmbeddings, AreAllThatAnEncoderComputes) {
  const auto engine = engine_of(folders()[0], {});
  EXPECT_THROW(engine->add({5, 6, 7}, {.max_tokens = 1}), UserError);
  EXPECT_THROW(engine->score({5, 6, 7}, {2}, [](int, std::span<const float>) {}), UserError);
  EXPECT_TRUE(engine->is_idle());
  // A text may fill the context.
  EXPECT_EQ(engine->embed(std::vector<int>(64, 5), Pooling::mean).size(), 32U);
  EXPECT_THROW(engine->embed(std::vector<int>(65, 5), Pooling::mean), UserError);
}

}  // namespace weft::reference_embeddings_test
