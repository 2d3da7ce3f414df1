#include "io/tokenizer_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_config_test {

using Ids = std::vector<int>;

// The settings of tokenizer.json: BOS before and EOS after a text.
Vocabulary plain() {
  Vocabulary vocabulary;
  vocabulary.tokens = {"a", "<bos>", "<eos>", "<s>", "<pad>"};
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::control);
  vocabulary.prefix = {1};
  vocabulary.suffix = {2};
  return vocabulary;
}

Vocabulary with(const Json& json, const std::string& model_type = "qwen3") {
  Vocabulary vocabulary = plain();
  apply_tokenizer_config(json, "tokenizer_config.json", model_type, vocabulary);
  return vocabulary;
}

Json named(const Json& changes) {
  Json json{{"bos_token", "<bos>"}, {"eos_token", {{"content", "<eos>"}}}};
  json.update(changes);
  return json;
}

TEST(TokenizerConfig, NamesTokens) {
  const Vocabulary read = with({{"bos_token", "<s>"}, {"eos_token", {{"content", "<eos>"}}}, {"pad_token", "<pad>"}});
  EXPECT_EQ(read.bos, 3);
  EXPECT_EQ(read.eos, 2);
  EXPECT_EQ(read.padding, 4);
}

// As transformers 4.57 encodes: these classes rebuild the tokens around a text, others use tokenizer.json's.
TEST(TokenizerConfig, ItsFlagsCountForClassesThatReadThem) {
  for (const char* name : {"LlamaTokenizerFast", "LlamaTokenizer", "GemmaTokenizerFast", "CohereTokenizerFast"}) {
    const auto ends = [&](Json changes) {
      changes["tokenizer_class"] = name;
      const Vocabulary read = with(named(changes));
      return std::pair(read.prefix, read.suffix);
    };
    EXPECT_EQ(ends(Json::object()), std::pair(Ids{1}, Ids())) << name;
    EXPECT_EQ(ends({{"add_bos_token", false}}), std::pair(Ids(), Ids())) << name;
    EXPECT_EQ(ends({{"add_bos_token", true}, {"add_eos_token", true}}), std::pair(Ids{1}, Ids{2})) << name;
    EXPECT_EQ(ends({{"add_bos_token", false}, {"add_eos_token", true}}), std::pair(Ids(), Ids{2})) << name;
    // Between two texts are the end of the first one and the begin of the second one.
    EXPECT_EQ(with(named({{"tokenizer_class", name}, {"add_eos_token", true}})).between, (Ids{2, 1})) << name;
  }
  for (const char* name : {"PreTrainedTokenizerFast", "GPT2TokenizerFast", "Qwen2Tokenizer"}) {
    const Vocabulary read = with(named({{"tokenizer_class", name}, {"add_bos_token", false}}));
    EXPECT_EQ(read.prefix, Ids{1}) << name;
    EXPECT_EQ(read.suffix, Ids{2}) << name;
  }
}

TEST(TokenizerConfig, TheModelHasTheClassWhereNoneIsNamed) {
  EXPECT_EQ(with(named({{"add_bos_token", false}}), "llama").prefix, Ids());
  EXPECT_EQ(with(named({{"add_bos_token", false}}), "qwen3").prefix, Ids{1});
}

TEST(TokenizerConfig, AClassHasABosOfItsOwn) {
  EXPECT_EQ(with({{"tokenizer_class", "LlamaTokenizer"}}).prefix, Ids{3});
  EXPECT_EQ(with({{"tokenizer_class", "LlamaTokenizer"}, {"bos_token", nullptr}}).prefix, Ids());
  EXPECT_NE(message_of([] {
              with({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", true}, {"bos_token", "<none>"}});
            }).find("[tokenizer_config.json] add_bos_token is true"),
            std::string::npos);
}

TEST(TokenizerConfig, SetsThePrefixSpaceOnlyOfAByteLevelInNoSequence) {
  const auto has_space = [](bool is_alone, bool was_there, bool is_wanted) {
    Vocabulary vocabulary = plain();
    vocabulary.byte_level_alone = is_alone;
    if (was_there) vocabulary.steps.emplace_back(PrefixSpace{});
    vocabulary.steps.emplace_back(PatternSplit{.pattern = std::string(kGpt2Pattern)});
    apply_tokenizer_config(Json{{"add_prefix_space", is_wanted}}, "tokenizer_config.json", "qwen3", vocabulary);
    return std::holds_alternative<PrefixSpace>(vocabulary.steps.front());
  };
  for (const bool was_there : {false, true})
    for (const bool is_wanted : {false, true}) {
      EXPECT_EQ(has_space(true, was_there, is_wanted), is_wanted);
      EXPECT_EQ(has_space(false, was_there, is_wanted), was_there);
    }
}

TEST(TokenizerConfig, TemplatesKnowTheTextsThatItNames) {
  const Vocabulary read = with({{"bos_token", nullptr},
                                {"sep_token", {{"content", "<sep>"}}},
                                {"cls_token", "<cls>"},
                                {"extra_special_tokens", {{"image_token", "<image>"}, {"other", 5}}}});
  const decltype(read.named_texts) wanted = {
      {"bos_token", std::nullopt}, {"cls_token", "<cls>"}, {"image_token", "<image>"}, {"sep_token", "<sep>"}};
  EXPECT_EQ(read.named_texts, wanted);
  EXPECT_TRUE(with({{"extra_special_tokens", {"<image>"}}}).named_texts.empty());
}

TEST(TokenizerConfig, KeysThatChangeResultsAreRefusedAndUnknownOnesListed) {
  EXPECT_NE(message_of([] {
              with({{"split_special_tokens", true}});
            }).find("split_special_tokens asks for"),
            std::string::npos);
  EXPECT_EQ(with({{"mine", 1}, {"legacy", true}}).unknown_keys, std::vector<std::string>{"mine"});
}

}  // namespace weft::tokenizer_config_test
