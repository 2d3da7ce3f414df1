#include "io/gguf_pre_tokenizers.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "io/gguf_vocabulary.h"
#include "io/tokenizer.h"
#include "small_vocabulary.h"
#include "tests/thrown_message.h"

namespace weft::gguf_pre_tokenizers_test {

TEST(GgufPreTokenizers, EveryRowKeepsTheText) {
  std::string previous;
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
    EXPECT_LT(previous, pre.name);
    previous = pre.name;
    const PreTokenizer pre_tokenizer(pre.steps);
    const std::string text = "It's 12,345 O'Neill\u2019s  caf\u00e9\n\n\u4e2d\u6587 x/y \t";
    std::string joined;
    const Pieces pieces = pre_tokenizer.split(text);
    for (size_t i = 0; i < pieces.ranges.size(); ++i) joined += pieces[i];
    EXPECT_EQ(joined, text) << pre.name;
  }
}

TEST(GgufPreTokenizers, AMissingNameIsDefaultAndNotGpt2) {
  EXPECT_EQ(find_gguf_pre_tokenizer("").name, "default");
  EXPECT_GT(find_gguf_pre_tokenizer("").steps.size(), find_gguf_pre_tokenizer("gpt-2").steps.size());
}

// As llama.cpp does (llama-cpp-python 0.3.36).
TEST(GgufPreTokenizers, DigitsOfYoutuStandAlone) {
  const Pieces pieces = PreTokenizer(find_gguf_pre_tokenizer("youtu").steps).split("a123");
  EXPECT_EQ(pieces.ranges.size(), 4U);
  EXPECT_EQ(PreTokenizer(find_gguf_pre_tokenizer("gpt-4o").steps).split("a123").ranges.size(), 2U);
}

TEST(GgufPreTokenizers, OnlyFilesSayThatDistilledModelsHaveABeginning) {
  EXPECT_FALSE(find_gguf_pre_tokenizer("deepseek-r1-qwen").add_bos);
}

TEST(GgufPreTokenizers, AnUnknownNameIsRefusedWithTheNearest) {
  const std::string message = message_of([] { find_gguf_pre_tokenizer("smolm"); });
  EXPECT_NE(message.find("tokenizer.ggml.pre must be"), std::string::npos) << message;
  EXPECT_NE(message.find("\"smolm\", did you mean \"smollm\""), std::string::npos) << message;
}

// Recorded from llama.cpp, with a vocabulary whose merges cross the borders of pieces. Where llama.cpp differs from the
// pattern that the model's publisher gives, the recorded ids are those of the publisher's pattern.
TEST(GgufPreTokenizers, RecordedIds) {
  std::ifstream file(WEFT_TEST_DATA "/tokenizers/gguf_pre.json");
  const Json recorded = Json::parse(file);
  const auto texts = recorded.at("texts").get<std::vector<std::string>>();
  int names = 0;
  for (const auto& [name, ids_of_texts] : recorded.at("ids").items()) {
    GgufTokenizerFields fields;
    fields.model = "gpt2";
    fields.pre = name;
    fields.tokens = recorded.at("tokens").get<std::vector<std::string>>();
    fields.merges = recorded.at("merges").get<std::vector<std::string>>();
    const Tokenizer tokenizer(vocabulary_from_gguf_fields(fields));
    ASSERT_EQ(ids_of_texts.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i], {.add_special = false}), ids_of_texts[i].get<std::vector<int>>())
          << name << ": " << texts[i];
    }
    ++names;
  }
  EXPECT_EQ(names, 50);
}

}  // namespace weft::gguf_pre_tokenizers_test
