#include "engine/weights/adapter_slots.h"

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/engine/step_logits.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_lora.h"
#include "tests/thrown_message.h"

namespace weft::adapter_slots_test {

using Logits = std::vector<std::vector<float>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

class LoadedAdapters : public ::testing::Test {
 protected:
  std::string folder(const std::string& name, SampleLora::Settings settings,
                     const std::set<std::string>& names = names_of_linear_layers()) const {
    return SampleLora(model_, base_, names, settings).write_folder(folder_, name);
  }
  std::unique_ptr<Engine> engine(Settings settings) const {
    settings.insert(settings.end(), {{"disable-compile-cache", "true"}, {"threads", "2"}});
    return tiny_engine(path_, settings);
  }
  std::unique_ptr<Engine> engine() const {
    return engine({{"allow-runtime-lora-updating", "true"}, {"max-lora-rank", "8"}});
  }
  static Logits logits(Engine& engine, std::int64_t choice) {
    return logits_of_step(engine.runner(), {{.count = 9, .adapter = choice}});
  }
  static std::shared_ptr<const LoadedAdapter> load(Engine& engine, const std::string& path) {
    AdapterSlots& slots = engine.runner().adapters();
    LoraParts parts;
    slots.stacks().reader().read(path, 1, parts);
    return slots.load(parts);
  }

  const ModelRegistry models_ = make_model_registry();
  const ModelDefinition& model_ = models_.find("llama", "test");
  const SampleCheckpoint base_{model_, {{"model_type", "llama"}}, 7};
  const TemporaryFolder folder_;
  const std::string path_ = base_.write_folder(folder_, "model", DType::bf16);
};

TEST_F(LoadedAdapters, ComputeWhatThoseOfTheStartDo) {
  const std::string first = folder("first", {.rank = 3, .seed = 1}),
                    second = folder("second", {.rank = 8, .seed = 2}, {"attn_k", "ffn_down", "output"});
  const auto at_start = engine({{"lora-modules", "first=" + first}, {"lora-modules", "second=" + second}});
  const auto opened = engine();
  const Logits plain = logits(*opened, 0);
  EXPECT_EQ(plain, logits(*at_start, 0)) << "the room for adapters changes no bit of other rows";
  auto one = load(*opened, first), other = load(*opened, second);
  EXPECT_NE(one->choice, other->choice);
  EXPECT_LT(logit_difference(logits(*opened, one->choice), logits(*at_start, 1)), 1e-4);
  EXPECT_LT(logit_difference(logits(*opened, other->choice), logits(*at_start, 2)), 1e-4);
  EXPECT_GT(logit_difference(logits(*opened, one->choice), plain), 0.01);
  const std::int64_t choice = one->choice;
  const std::uint64_t id = one->id;
  one = nullptr;
  EXPECT_EQ(logits(*opened, choice), plain) << "its memory is given back";
  one = load(*opened, second);
  EXPECT_EQ(one->choice, choice);
  EXPECT_NE(one->id, id);
  EXPECT_EQ(logits(*opened, choice), logits(*opened, other->choice)) << "nothing is left of the first";
}

TEST_F(LoadedAdapters, TakePlacesUntilTheyEnd) {
  const std::string path = folder("first", {.rank = 3, .seed = 1}, {"attn_q"});
  const auto opened =
      engine({{"allow-runtime-lora-updating", "true"}, {"max-loras", "17"}, {"lora-modules", "a=" + path}});
  std::vector<std::shared_ptr<const LoadedAdapter>> loaded;
  while (auto one = load(*opened, path)) loaded.push_back(one);
  EXPECT_EQ(loaded.size(), 17U);
  loaded.pop_back();
  EXPECT_NE(load(*opened, path), nullptr);
  loaded = opened->runner().adapters().take_named();
  EXPECT_EQ(loaded.size(), 1U);
  loaded.clear();  // the adapter of the start
  loaded.push_back(load(*opened, path));
  EXPECT_NE(loaded[0], nullptr);
}

TEST_F(LoadedAdapters, AreRefusedWhereTheyDoNotFit) {
  const auto opened = engine();
  EXPECT_EQ(missing_part(message_of([&] { load(*opened, folder("large", {.rank = 9})); }),
                         {"LoRA rank 9 is greater than max_lora_rank 8", "large", "--max-lora-rank"}),
            "");
  EXPECT_NE(message_of([&] { load(*opened, folder_ / "none"); }), "");
  const SampleCheckpoint mixture(models_.find("qwen2_moe", "test"), {{"model_type", "qwen2_moe"}}, 7);
  const SampleLora router(models_.find("qwen2_moe", "test"), mixture, {"ffn_gate_inp"}, {});
  const auto experts = tiny_engine(mixture.write_folder(folder_, "mixture", DType::f32),
                                   {{"allow-runtime-lora-updating", "true"}, {"disable-compile-cache", "true"}});
  EXPECT_EQ(missing_part(message_of([&] { load(*experts, router.write_folder(folder_, "router")); }),
                         {"mlp.gate.", "no plain linear layer", "routers"}),
            "");
  EXPECT_EQ(missing_part(message_of([&] {
                           engine({{"allow-runtime-lora-updating", "true"}, {"device", "fake-cuda"}});
                         }),
                         {"--allow-runtime-lora-updating", "CPU"}),
            "");
}

}  // namespace weft::adapter_slots_test
