// LoRA adapters of every architecture of the registry: a model with an adapter computes what one with merged weights
// does, whichever of both is a folder or a GGUF file.

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/engine/step_logits.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_lora.h"
#include "tests/thrown_message.h"

namespace weft::lora_models_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Logits = std::vector<std::vector<float>>;

class LoraOfEveryModel : public ::testing::Test {
 protected:
  // Calls `body` for each architecture that has linear layers of the table's usual names.
  void for_each(const std::function<void(const std::string& name, const SampleCheckpoint& base,
                                         const SampleCheckpoint& merged, const SampleLora& adapter)>& body) const {
    int models = 0;
    for (const std::string& architecture : models_.architectures()) {
      SCOPED_TRACE(architecture);
      const ModelDefinition& model = models_.find(architecture, "test");
      const SampleCheckpoint base(model, {{"model_type", architecture}}, 7),
          merged(model, {{"model_type", architecture}}, 7);
      const SampleLora adapter(model, base, names_of_linear_layers(), {});
      if (adapter.empty()) continue;
      adapter.merge_into(merged);
      body(architecture, base, merged, adapter);
      ++models;
    }
    EXPECT_GE(models, 40);
  }
  Logits logits(const std::string& path, Settings settings = {}, std::int64_t adapter = 0) const {
    settings.insert(settings.end(), {{"disable-compile-cache", "true"}, {"threads", "2"}, {"kv-cache-dtype", "f32"}});
    const auto engine = tiny_engine(path, settings);
    if (!engine->runner().facts().config.is_causal) return {pooled(*engine, adapter)};
    return logits_of_step(engine->runner(), {{.count = 9, .adapter = adapter}});
  }
  // Of an encoder, which has no logits: the mean of the hidden states.
  static std::vector<float> pooled(Engine& engine, std::int64_t adapter) {
    engine.add({.prompt = std::make_shared<const std::vector<int>>(some_ids(9)),
                .parameters = {.max_tokens = 1},
                .adapter = adapter == 0 ? nullptr : engine.runner().adapters().take_named().at(0),
                .pooling = Pooling::mean});
    std::vector<float> mean;
    while (!engine.is_idle())
      for (const RequestEvent& event : engine.step())
        if (event.embedding != nullptr) mean = *event.embedding;
    return mean;
  }

  static constexpr double kRounding = 2e-4;  // of sums of products in another order
  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(LoraOfEveryModel, EqualsMergedWeights) {
  for_each([&](const std::string& name, const SampleCheckpoint& base, const SampleCheckpoint& merged,
               const SampleLora& adapter) {
    const std::string path = base.write_folder(folder_, name, DType::f32);
    const std::string lora_path = adapter.write_folder(folder_, name + "-lora");
    const Logits wanted = logits(merged.write_folder(folder_, name + "-merged", DType::f32));
    EXPECT_GT(logit_difference(logits(path), wanted), 0.01) << "the adapter changes something";
    EXPECT_LT(logit_difference(logits(path, {{"lora", lora_path}}), wanted), kRounding);
    EXPECT_LT(logit_difference(logits(path, {{"lora-modules", "a=" + lora_path}}, 1), wanted), kRounding);
  });
}

// The order of rows differs between formats, and what is one weight in one may be two in the other. Where this is not
// implemented, the adapter is refused.
TEST_F(LoraOfEveryModel, MayBeOfTheOtherFormat) {
  int refused = 0, tried = 0;
  for_each([&](const std::string& name, const SampleCheckpoint& base, const SampleCheckpoint& merged,
               const SampleLora& adapter) {
    const Logits wanted = logits(merged.write_folder(folder_, name + "-merged", DType::f32));
    const auto check = [&](const std::string& path, const std::string& lora_path) {
      const std::string message = message_of([&] {
        EXPECT_LT(logit_difference(logits(path, {{"lora", lora_path}}), wanted), kRounding) << path << " " << lora_path;
      });
      const auto says = [&](const char* reason) { return message.find(reason) != std::string::npos; };
      EXPECT_TRUE(message.empty() || says("order its rows differently") || says("the model has no such weight") ||
                  says("wanted A of"))  // two weights in one format, merged in the other
          << message;
      refused += message.empty() ? 0 : 1;
      ++tried;
    };
    const std::string folder = base.write_folder(folder_, name, DType::f32),
                      gguf = base.write_gguf(folder_, name + ".gguf", DType::f32),
                      of_folder = adapter.write_folder(folder_, name + "-lora"),
                      of_gguf = adapter.write_gguf(folder_, name + "-lora.gguf");
    check(gguf, of_folder);
    check(folder, of_gguf);
    check(gguf, of_gguf);
  });
  EXPECT_LE(refused * 8, tried) << refused;
}

}  // namespace weft::lora_models_test
