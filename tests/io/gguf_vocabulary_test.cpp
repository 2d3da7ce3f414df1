#include "io/gguf_vocabulary.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/tokenizer.h"
#include "small_vocabulary.h"
#include "tests/thrown_message.h"

namespace weft::gguf_vocabulary_test {

using Ids = std::vector<int>;

GgufTokenizerFields small_fields() {
  GgufTokenizerFields fields;
  fields.model = "gpt2";
  fields.pre = "smollm";
  fields.tokens = small_vocabulary({{"1", "2"}, {" ", "a"}}).tokens;
  fields.tokens.push_back("<|end|>");
  fields.token_type.assign(fields.tokens.size(), 1);
  fields.token_type.back() = 3;
  fields.merges = {"1 2", "\u0120 a"};
  fields.bos_token_id = 258;
  fields.eos_token_id = 258;
  return fields;
}

std::string error_of(GgufTokenizerFields fields) {
  return message_of([&] { vocabulary_from_gguf_fields(std::move(fields)); });
}

TEST(GgufVocabulary, ThePreTokenizerIsChosenByName) {
  GgufTokenizerFields fields = small_fields();
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).encode("12 a"), (Ids{'1', '2', 257}));
  fields.pre = "gpt-2";
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).encode("12 a<|end|>"), (Ids{256, 257, 258}));
}

TEST(GgufVocabulary, EveryNamedPreTokenizerWorks) {
  std::string_view previous;
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
    EXPECT_LT(previous, pre.name);
    previous = pre.name;
    GgufTokenizerFields fields = small_fields();
    fields.pre = pre.name;
    const Tokenizer tokenizer(vocabulary_from_gguf_fields(fields));
    const std::string text = "It's 12,345 O'Neill\u2019s  caf\u00e9\n\n\u4e2d\u6587 x/y \t";
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special = false})), text) << pre.name;
  }
}

TEST(GgufVocabulary, BeginningOfTextFollowsTheFileThenTheName) {
  GgufTokenizerFields fields = small_fields();
  EXPECT_TRUE(vocabulary_from_gguf_fields(fields).prefix.empty());
  fields.pre = "llama-bpe";
  EXPECT_EQ(vocabulary_from_gguf_fields(fields).prefix, (Ids{258}));
  fields.add_bos_token = false;
  fields.add_eos_token = true;
  EXPECT_TRUE(vocabulary_from_gguf_fields(fields).prefix.empty());
  EXPECT_EQ(vocabulary_from_gguf_fields(fields).suffix, (Ids{258}));
}

TEST(GgufVocabulary, EndOfGenerationTokensAreAscendingAndDistinct) {
  GgufTokenizerFields fields = small_fields();
  fields.eot_token_id = 3;
  fields.eom_token_id = 258;
  EXPECT_EQ(vocabulary_from_gguf_fields(fields).end_of_generation, (Ids{3, 258}));
}

// As in llama.cpp, because files name at most one of several ends.
TEST(GgufVocabulary, TextsOfTokensSayThatTheyEndGeneration) {
  const auto ends = [](const std::vector<std::string>& more, std::int32_t type) {
    GgufTokenizerFields fields = small_fields();
    fields.tokens.back() = "<other>";
    for (const std::string& text : more) {
      fields.tokens.push_back(text);
      fields.token_type.push_back(type);
    }
    return vocabulary_from_gguf_fields(fields);
  };
  for (const char* text : {"<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|endoftext|>", "<|fim_pad|>"})
    for (const std::int32_t type : {1, 3, 4}) {
      const Vocabulary vocabulary = ends({text}, type);
      EXPECT_EQ(vocabulary.end_of_generation, (Ids{258, 259})) << text;
      EXPECT_TRUE(Tokenizer(vocabulary).is_special(259)) << text << " " << type;
      EXPECT_EQ(Tokenizer(vocabulary).encode(std::string("a") + text), (Ids{'a', 259}));
    }
  EXPECT_EQ(ends({"<|end|>", "<|return|>"}, 3).end_of_generation, (Ids{258, 259, 260}));
  EXPECT_EQ(ends({"<|end|>", "<|return|>", "<|call|>"}, 3).end_of_generation, (Ids{258, 260, 261}));
  EXPECT_EQ(ends({"<|im_start|>"}, 3).end_of_generation, (Ids{258}));
}

TEST(GgufVocabulary, AnEndThatIsNoTokenIsLeftOut) {
  GgufTokenizerFields fields = small_fields();
  fields.eos_token_id = 1000;
  fields.eot_token_id = 3;
  const Vocabulary vocabulary = vocabulary_from_gguf_fields(fields);
  EXPECT_EQ(vocabulary.eos, std::nullopt);
  ASSERT_EQ(vocabulary.warnings.size(), 1U);
  EXPECT_NE(vocabulary.warnings[0].find("eos_token_id 1000 is left out"), std::string::npos);
}

TEST(GgufVocabulary, RefusesOtherTokenizerModelsByName) {
  GgufTokenizerFields fields = small_fields();
  fields.model = "llama";
  EXPECT_EQ(
      error_of(fields),
      "[tokenizer] tokenizer.ggml.model must be \"gpt2\" (byte-level BPE), but is \"llama\", which is not supported");
}

TEST(GgufVocabulary, NamesTheKnownPreTokenizersBesideAnUnknownOne) {
  GgufTokenizerFields fields = small_fields();
  fields.pre = "klingon";
  const std::string message = error_of(fields);
  EXPECT_NE(message.find("smollm, starcoder"), std::string::npos) << message;
  EXPECT_NE(message.find("but is \"klingon\""), std::string::npos) << message;
  fields.pre = "";
  EXPECT_NE(error_of(fields).find("but is missing"), std::string::npos);
}

TEST(GgufVocabulary, RefusesBadListsAndIds) {
  for (const std::string merge : {"", "ab", " ab", "ab ", " "}) {
    GgufTokenizerFields fields = small_fields();
    fields.merges.push_back(merge);
    EXPECT_NE(error_of(fields).find("tokenizer.ggml.merges[2] must be two tokens"), std::string::npos) << merge;
  }
  GgufTokenizerFields types = small_fields();
  types.token_type.pop_back();
  EXPECT_NE(error_of(types).find("must have 259 entries"), std::string::npos);
  for (const int type : {0, 6, 7, -1}) {
    GgufTokenizerFields fields = small_fields();
    fields.token_type[5] = type;
    EXPECT_NE(error_of(fields).find("tokenizer.ggml.token_type[5]"), std::string::npos) << type;
  }
  for (const int64_t id : {int64_t{-1}, int64_t{259}, int64_t{1} << 40}) {
    GgufTokenizerFields fields = small_fields();
    fields.padding_token_id = id;
    EXPECT_NE(error_of(fields).find("padding_token_id must be an id below 259"), std::string::npos) << id;
  }
}

}  // namespace weft::gguf_vocabulary_test
