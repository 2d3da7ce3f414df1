// Words of config.json and of GGUF files for a model under another name: the part for text of a model for images.

#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::aliases_test {

TEST(Aliases, NameTheSameWeights) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder folder;
  for (const std::string& architecture : models.architectures()) {
    const ModelDefinition& model = models.find(architecture, "test");
    for (const std::string& alias : model.aliases) {
      SCOPED_TRACE(alias);
      EXPECT_EQ(&models.find(alias, "test"), &model);
      const SampleCheckpoint sample(model, {{"model_type", alias}});
      const Checkpoint checkpoint = Checkpoint::open(sample.write_folder(folder, alias, DType::bf16));
      EXPECT_EQ(&models.find(checkpoint), &model);
      EXPECT_NO_THROW(model.check_weights(checkpoint, checkpoint.config(model.facts)));
    }
  }
}

// The sample of each such architecture has the word and the class.
TEST(Aliases, OfAClassAreWordsOfOthers) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder folder;
  int count = 0;
  for (const std::string& architecture : models.architectures()) {
    const ModelDefinition& model = models.find(architecture, "test");
    for (const auto& [word, begin] : model.class_aliases) {
      const auto found = [&](const std::string& name) {
        const SampleCheckpoint sample(model, {{"model_type", word}, {"architectures", {name}}});
        return &models.find(Checkpoint::open(sample.write_folder(folder, name, DType::f32)));
      };
      const std::string own = nlohmann::json::parse(model.sample_config).at("architectures").at(0);
      EXPECT_TRUE(own.starts_with(begin)) << own;
      EXPECT_EQ(found(own), &model);
      EXPECT_EQ(found("Other" + own), &models.find(word, "test"));
      ++count;
    }
  }
  EXPECT_GT(count, 0);
}

TEST(Aliases, OfGgufFilesAllowSectionsOfPositions) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder folder;
  for (const auto& [alias, own] : {std::pair{"qwen2vl", "qwen2"}, std::pair{"qwen3vl", "qwen3"}}) {
    ModelDefinition renamed = models.find(own, "test");
    renamed.gguf_architecture = alias;
    testing::GgufBytes file = SampleCheckpoint(renamed).gguf(DType::f32);
    file.i32s(std::string(alias) + ".rope.dimension_sections", {4, 6, 6, 0});
    const std::string path = folder / (std::string(alias) + ".gguf");
    std::ofstream(path, std::ios::binary) << file.bytes();
    const Checkpoint checkpoint = Checkpoint::open(path);
    const ModelDefinition& model = models.find(checkpoint);
    EXPECT_EQ(model.architectures[0], own);
    EXPECT_NO_THROW(model.check_weights(checkpoint, checkpoint.config(model.facts)));
  }
}

TEST(Aliases, AFolderHasNoWordOfGgufFiles) {
  const ModelRegistry models = make_model_registry();
  const TemporaryFolder folder;
  const SampleCheckpoint sample(models.find("gpt_neox", "test"), {{"model_type", "gptneox"}});
  const Checkpoint checkpoint = Checkpoint::open(sample.write_folder(folder, "gptneox", DType::bf16));
  EXPECT_NE(message_of([&] { models.find(checkpoint); }).find("is not implemented"), std::string::npos);
}

}  // namespace weft::aliases_test
