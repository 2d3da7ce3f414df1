#include "io/folder_vocabulary.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/tokenizer.h"
#include "tests/thrown_message.h"

namespace weft::folder_vocabulary_test {

using Ids = std::vector<int>;
using Files = std::map<std::string, std::string, std::less<>>;

VocabularyFolder folder_of(Files files, std::string architecture = "llama") {
  return {"f", std::move(architecture), [files = std::move(files)](std::string_view name) {
            const auto found = files.find(name);
            return found == files.end() ? std::nullopt : std::optional<std::string>(found->second);
          }};
}
Ids encode(Files files, std::string_view text, std::string architecture = "llama") {
  return Tokenizer(read_vocabulary_file(folder_of(std::move(files), std::move(architecture))).vocabulary).encode(text);
}
std::string error_of(Files files, std::string architecture = "llama") {
  return message_of([&] { encode(std::move(files), "", std::move(architecture)); });
}

constexpr const char* kRanks = "YQ== 0\nYg== 1\nIA== 2\nMQ== 3\n";  // a, b, space, 1

TEST(FolderVocabulary, ATiktokenFileTakesItsPatternFromTheModel) {
  EXPECT_EQ(encode({{"tokenizer.model", kRanks}}, "ab 1"), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(encode({{"qwen.tiktoken", kRanks}}, "ab 1", "qwen"), (Ids{0, 1, 2, 3}));
  const char* words = "YQ== 0\nQg== 1\nYUI= 2\n";  // a, B, aB
  EXPECT_EQ(encode({{"tiktoken.model", words}}, "aB"), (Ids{2}));
  EXPECT_EQ(encode({{"tiktoken.model", words}}, "aB", "kimi_k2"), (Ids{0, 1})) << "words are split by letter case";
  const std::string message = error_of({{"tokenizer.model", kRanks}}, "other");
  EXPECT_NE(message.find("wanted an encoding.json"), std::string::npos) << message;
}

TEST(FolderVocabulary, EncodingJsonHasPatternAndSpecialTokens) {
  const Files files = {{"vocab.tiktoken", kRanks},
                       {"encoding.json", R"({"pat_str": "a|[^a]+", "special_tokens": {"<s>": 7}})"}};
  EXPECT_EQ(encode(files, "a<s>b", "other"), (Ids{0, 7, 1}));
  EXPECT_NE(error_of({{"vocab.tiktoken", kRanks}, {"encoding.json", "{}"}}).find("pat_str must be"), std::string::npos);
}

TEST(FolderVocabulary, AddedTokensComeFromOtherFiles) {
  const Files files = {
      {"tokenizer.model", kRanks},
      {"added_tokens.json", R"({"<x>": 4})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"6": {"content": "<y>", "special": true}}})"}};
  EXPECT_EQ(encode(files, "a<x><y>"), (Ids{0, 4, 6}));
  const auto with_config = [](const char* text) {
    return error_of({{"tokenizer.model", kRanks}, {"tokenizer_config.json", text}});
  };
  EXPECT_NE(with_config(R"({"added_tokens_decoder": {"x": {}}})").find("must map ids to objects"), std::string::npos);
  EXPECT_NE(with_config(R"({"added_tokens_decoder": {"4": {}}})").find("must have a content"), std::string::npos);
  EXPECT_NE(with_config(R"({"added_tokens_decoder": {"1": {"content": "z"}}})").find("token 1 must be \"b\""),
            std::string::npos);
  EXPECT_NE(with_config(R"({"added_tokens_decoder": {"99999999": {"content": "z"}}})").find("must be 0 to"),
            std::string::npos);
}

TEST(FolderVocabulary, TokenizerJsonComesFirstAndSomethingMustBeThere) {
  EXPECT_NE(error_of({{"tokenizer.json", "[]"}, {"tokenizer.model", kRanks}}).find("[tokenizer.json]"),
            std::string::npos);
  EXPECT_NE(error_of({}).find("[f] wanted a folder with tokenizer.json"), std::string::npos);
}

constexpr const char* kVocab = R"({"<|endoftext|>": 0, "a": 1, "B": 2, "\u0120": 3, "aB": 4, "1": 5, "\u01201": 6})";
constexpr const char* kMerges = "#version: 0.2\na B\n\u0120 1\n";

TEST(FolderVocabulary, VocabAndMergesTakeTheirPatternFromTheModel) {
  const Files files = {{"vocab.json", kVocab}, {"merges.txt", kMerges}};
  EXPECT_EQ(encode(files, "aB 1<|endoftext|>", "gpt2"), (Ids{4, 6, 0}));
  EXPECT_EQ(encode(files, "aB 1<|endoftext|>", "qwen2"), (Ids{4, 3, 5, 0}));
  const std::string message = error_of(files, "llama");
  EXPECT_NE(message.find("[f/vocab.json] has no pattern"), std::string::npos) << message;
  EXPECT_NE(message.find("a model_type of gpt2, opt, "), std::string::npos) << message;
  EXPECT_NE(message.find("but it is \"llama\""), std::string::npos) << message;
}

TEST(FolderVocabulary, OfVocabAndMergesBothMustBeThere) {
  EXPECT_NE(error_of({{"vocab.json", kVocab}}, "gpt2").find("[f/vocab.json] wanted merges.txt next to it"),
            std::string::npos);
  EXPECT_NE(error_of({{"merges.txt", kMerges}}, "gpt2").find("[f/merges.txt] wanted vocab.json next to it"),
            std::string::npos);
}

TEST(FolderVocabulary, SpecialTokensOfVocabAndMergesComeFromOtherFiles) {
  Files files = {{"vocab.json", kVocab},
                 {"merges.txt", kMerges},
                 {"added_tokens.json", R"({"<x>": 7, "<y>": 8})"},
                 {"special_tokens_map.json", R"({"bos_token": {"content": "<y>", "lstrip": true}})"}};
  const FolderVocabulary both = read_vocabulary_file(folder_of(files, "gpt2"));
  EXPECT_EQ(both.vocabulary.kinds[0], TokenKind::control) << "by default";
  EXPECT_EQ(both.vocabulary.kinds[7], TokenKind::user_defined);
  EXPECT_EQ(both.vocabulary.kinds[8], TokenKind::control);
  EXPECT_EQ(both.tokenizer_config->at("eos_token"), "<|endoftext|>");
  EXPECT_EQ(both.tokenizer_config->at("bos_token").at("content"), "<y>");
  files["special_tokens_map.json"] = R"({"bos_token": 3})";
  EXPECT_NE(error_of(files, "gpt2").find("[f/special_tokens_map.json] bos_token"), std::string::npos);
  files["tokenizer_config.json"] = R"({"added_tokens_decoder": {}})";
  EXPECT_EQ(error_of(files, "gpt2"), "") << "then special_tokens_map.json is not read";
  files["tokenizer_config.json"] = R"({"added_tokens_decoder": {}, "add_prefix_space": true})";
  EXPECT_NE(error_of(files, "qwen2").find("add_prefix_space must be false"), std::string::npos);
}

}  // namespace weft::folder_vocabulary_test
