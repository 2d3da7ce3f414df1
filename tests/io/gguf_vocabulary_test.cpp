#include "io/gguf_vocabulary.h"

#include <limits>
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
  fields.other_ends = {{"fim_sep_token_id", 4}, {"eot_token_id", 3}, {"eom_token_id", 258}};
  EXPECT_EQ(vocabulary_from_gguf_fields(fields).end_of_generation, (Ids{3, 4, 258}));
}

TEST(GgufVocabulary, NamesTheTokensThatFillInTheMiddle) {
  GgufTokenizerFields fields = small_fields();
  EXPECT_FALSE(vocabulary_from_gguf_fields(fields).fill_middle);
  fields.fim_pre_token_id = 2;
  fields.fim_suf_token_id = 3;
  fields.fim_mid_token_id = 4;
  const Vocabulary vocabulary = vocabulary_from_gguf_fields(fields);
  EXPECT_EQ(vocabulary.fill_prefix, 2);
  EXPECT_EQ(vocabulary.fill_suffix, 3);
  EXPECT_EQ(vocabulary.fill_middle, 4);
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
  EXPECT_EQ(ends({"<|end|>", "<|calls|>", "<|flush|>"}, 3).end_of_generation, (Ids{258, 260, 261}));
  EXPECT_EQ(ends({"</s>", "<|eom_id|>"}, 1).end_of_generation, (Ids{258, 259, 260}));
  EXPECT_EQ(ends({"</s>", "<|tool_response>"}, 1).end_of_generation, (Ids{258, 260}));
  EXPECT_FALSE(Tokenizer(ends({"</s>", "<|tool_response>"}, 1)).is_special(259)) << "plain text";
  EXPECT_EQ(ends({"<|im_start|>"}, 3).end_of_generation, (Ids{258}));
}

TEST(GgufVocabulary, TheMarksOfGptOssAreShown) {
  GgufTokenizerFields fields = small_fields();
  for (const char* text : {"<|channel|>", "<|return|>", "<|call|>"}) {
    fields.tokens.push_back(text);
    fields.token_type.push_back(3);
  }
  const std::vector<int> ids = {259, 'a', 260};
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).decode(ids, {.skip_special = true}), "<|channel|>a");
  fields.tokens[261] = "<|other|>";
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).decode(ids, {.skip_special = true}), "a");
}

TEST(GgufVocabulary, AnEndThatIsNoTokenIsLeftOut) {
  GgufTokenizerFields fields = small_fields();
  fields.eos_token_id = 1000;
  fields.other_ends = {{"eot_token_id", 3}};
  const Vocabulary vocabulary = vocabulary_from_gguf_fields(fields);
  EXPECT_EQ(vocabulary.eos, std::nullopt);
  ASSERT_EQ(vocabulary.warnings.size(), 1U);
  EXPECT_NE(vocabulary.warnings[0].find("eos_token_id 1000 is left out"), std::string::npos);
}

TEST(GgufVocabulary, RefusesOtherTokenizerModelsByName) {
  GgufTokenizerFields fields = small_fields();
  fields.model = "lama";
  const std::string message = error_of(fields);
  EXPECT_NE(message.find("tokenizer.ggml.model must be gpt2"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean \"llama\""), std::string::npos) << message;
}

GgufTokenizerFields sentencepiece_fields(const std::string& model) {
  GgufTokenizerFields fields;
  fields.model = model;
  fields.tokens = {"<unk>", "<s>", "</s>", "<0x0A>", "\u2581", "a", "b", "ab", "\u2581ab", "<x>"};
  fields.scores = {0, 0, 0, 0, -5, -6, -7, -2, -1, 0};
  fields.token_type = {2, 3, 3, 6, 1, 1, 1, 1, 1, 4};
  return fields;
}

TEST(GgufVocabulary, SentencePieceBpe) {
  const Tokenizer tokenizer(vocabulary_from_gguf_fields(sentencepiece_fields("llama")));
  EXPECT_EQ(tokenizer.encode("ab\nba"), (Ids{1, 8, 3, 6, 5}));
  EXPECT_EQ(tokenizer.encode("ab<x>ab z"), (Ids{1, 8, 9, 8, 4, 0}));
  EXPECT_EQ(tokenizer.encode(""), (Ids{1}));
  EXPECT_EQ(tokenizer.decode(std::vector<int>{8, 3, 8}), "ab\n ab");
  GgufTokenizerFields fields = sentencepiece_fields("llama");
  fields.add_space_prefix = false;
  fields.add_bos_token = false;
  fields.add_eos_token = true;
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).encode("ab ab"), (Ids{7, 8, 2}));
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).decode(std::vector<int>{8}), " ab");
}

TEST(GgufVocabulary, SentencePieceUnigram) {
  GgufTokenizerFields fields = sentencepiece_fields("t5");
  fields.eos_token_id = 2;
  fields.unknown_token_id = 0;
  fields.remove_extra_whitespaces = true;
  const Tokenizer tokenizer(vocabulary_from_gguf_fields(fields));
  EXPECT_EQ(tokenizer.encode("  ab   ab "), (Ids{8, 8, 2}));
  EXPECT_EQ(tokenizer.encode("a"), (Ids{4, 5, 2}));
  EXPECT_EQ(tokenizer.encode("zz"), (Ids{4, 0, 2}));
  EXPECT_EQ(tokenizer.encode(" "), (Ids{2}));
}

TEST(GgufVocabulary, WordPiece) {
  GgufTokenizerFields fields;
  fields.model = "bert";
  fields.tokens = {"[UNK]", "[CLS]", "[SEP]", "\u2581un", "able", "\u2581,"};
  fields.token_type = {2, 3, 3, 1, 1, 1};
  fields.unknown_token_id = 0;
  fields.bos_token_id = 1;
  fields.separator_token_id = 2;
  const Tokenizer tokenizer(vocabulary_from_gguf_fields(fields));
  EXPECT_EQ(tokenizer.encode("Un\u00e1ble,unable x"), (Ids{1, 3, 4, 5, 3, 4, 0, 2}));
  EXPECT_EQ(tokenizer.decode(std::vector<int>{3, 4, 5, 3}), "unable, un");
  fields.unknown_token_id.reset();
  EXPECT_NE(message_of([&] { Tokenizer(vocabulary_from_gguf_fields(fields)); }).find("must have an unknown token"),
            std::string::npos);
}

TEST(GgufVocabulary, MergesWithByteFallback) {
  GgufTokenizerFields fields = sentencepiece_fields("gemma4");
  fields.merges = {"a b", "\u2581 ab"};
  fields.bos_token_id = 1;
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).encode("ab ab\nb"), (Ids{1, 7, 8, 3, 6}));
  fields.tokens[9] = "b";  // as in the files of Gemma 4
  fields.token_type[9] = 1;
  EXPECT_EQ(Tokenizer(vocabulary_from_gguf_fields(fields)).encode("\nb"), (Ids{1, 3, 9}));
}

TEST(GgufVocabulary, RefusesListsThatDoNotFit) {
  GgufTokenizerFields fields = sentencepiece_fields("llama");
  fields.scores.pop_back();
  EXPECT_NE(error_of(fields).find("tokenizer.ggml.scores must have 10 entries, one for each token, but has 9"),
            std::string::npos);
  fields = sentencepiece_fields("t5");
  fields.token_type.pop_back();
  EXPECT_NE(error_of(fields).find("tokenizer.ggml.token_type must have 10 entries"), std::string::npos);
  fields = sentencepiece_fields("llama");
  fields.unknown_token_id = 10;
  EXPECT_NE(error_of(fields).find("unknown_token_id must be an id below 10"), std::string::npos);
  fields = sentencepiece_fields("t5");
  fields.character_map = "abc";
  EXPECT_NE(message_of([&] { Tokenizer(vocabulary_from_gguf_fields(fields)); }).find("character map must begin"),
            std::string::npos);
  fields = sentencepiece_fields("llama");
  fields.scores[4] = std::numeric_limits<float>::infinity();
  EXPECT_NE(message_of([&] { Tokenizer(vocabulary_from_gguf_fields(fields)); }).find("score of token 4 must be finite"),
            std::string::npos);
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
