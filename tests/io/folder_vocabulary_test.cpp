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
  const auto config = files.find("tokenizer_config.json");
  const auto json = config == files.end() ? std::optional<Json>() : Json::parse(config->second);
  return Tokenizer(read_vocabulary_file(folder_of(std::move(files), std::move(architecture)), json)).encode(text);
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

}  // namespace weft::folder_vocabulary_test
