#include "io/embedding_config.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::embedding_config_test {

using checkpoint_parts::Folder;

constexpr const char* kModules =
    R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

struct Case {
  std::string pooling, modules = kModules;
};

// The pooling of a folder with these files; or the message.
std::string read(const Case& one) {
  Folder folder;
  folder.add("tokenizer.json", checkpoint_parts::kTokenizer);
  folder.add("model.safetensors", {checkpoint_parts::counted("a", 0)});
  if (!one.modules.empty()) folder.add("modules.json", one.modules);
  if (!one.pooling.empty()) {
    std::filesystem::create_directory(folder / "1_Pooling");
    folder.add("1_Pooling/config.json", one.pooling);
  }
  std::string result;
  const std::string message = message_of([&] {
    const auto pooling = pooling_of(Checkpoint::open(folder / ""), modules_of(Checkpoint::open(folder / "")));
    result = !pooling ? "none" : *pooling == Pooling::last ? "last" : *pooling == Pooling::mean ? "mean" : "cls";
  });
  return message.empty() ? result : message;
}

TEST(EmbeddingConfig, IsThatOfSentenceTransformers) {
  EXPECT_EQ(read({"", ""}), "none");
  EXPECT_EQ(read({R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": false,
                      "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true, "include_prompt": true})"}),
            "last");
  EXPECT_EQ(read({R"({"pooling_mode_mean_tokens": true})"}), "mean");
  EXPECT_EQ(read({R"({"pooling_mode_cls_token": true})"}), "cls");
  EXPECT_EQ(read({R"({"pooling_mode": "lasttoken"})"}), "last");
}

TEST(EmbeddingConfig, RefusesWhatWouldGiveOtherEmbeddings) {
  const auto has = [](const Case& one, const char* text) {
    const std::string message = read(one);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  has({R"({"pooling_mode_max_tokens": true})"}, "[1_Pooling/config.json] pooling_mode_max_tokens");
  has({R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"}, "several");
  has({R"({"pooling_mode_cls_token": false})"}, "none is");
  has({R"({"pooling_mode": "max"})"}, "\"max\"");
  has({""}, "there is no 1_Pooling/config.json");
  has({"{}", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])"}, "Dense");
  has({"{}", R"([{"type": "sentence_transformers.models.Pooling", "path": "../other"}])"}, "../other");
  has({"{}", "{}"}, "[modules.json] must be a list");
  has({"{}", "["}, "[modules.json]");
  has({"{}", "[1]"}, "[modules.json]");
}

TEST(EmbeddingConfig, OfGgufIsANumber) {
  const auto read_gguf = [](std::uint32_t type) {
    const TemporaryFolder folder;
    auto file = checkpoint_parts::tiny_gguf();
    file.u32("llama.pooling_type", type);
    checkpoint_parts::write(folder / "a.gguf", file.bytes());
    return pooling_of(Checkpoint::open(folder / "a.gguf"), {});
  };
  EXPECT_EQ(read_gguf(0), std::nullopt);
  EXPECT_EQ(read_gguf(1), Pooling::mean);
  EXPECT_EQ(read_gguf(2), Pooling::cls);
  EXPECT_EQ(read_gguf(3), Pooling::last);
  EXPECT_NE(message_of([&] { read_gguf(4); }).find("llama.pooling_type"), std::string::npos);
}

TEST(EmbeddingConfig, WordsAreThoseOfLlamaCpp) {
  EXPECT_EQ(pooling_from_text("mean", "--pooling"), Pooling::mean);
  EXPECT_EQ(message_of([] { pooling_from_text("rank", "--pooling"); }),
            "[--pooling] must be one of last, mean, cls, but is \"rank\"");
}

}  // namespace weft::embedding_config_test
