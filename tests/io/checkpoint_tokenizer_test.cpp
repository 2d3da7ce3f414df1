// What a Checkpoint reads for text: vocabulary, chat templates and the configuration of generation.

#include <algorithm>
#include <filesystem>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::checkpoint_tokenizer_test {

using namespace checkpoint_parts;
using testing::GgufBytes;

TEST(CheckpointTokenizer, ReadsTokenizerAndTemplatesOfAGgufFile) {
  const TemporaryFolder folder;
  write(folder / "tiny.gguf", tiny_gguf().bytes());
  const auto checkpoint = Checkpoint::open(folder / "tiny.gguf");
  const auto vocabulary = checkpoint.vocabulary();
  EXPECT_EQ(vocabulary.tokens.size(), 6U);
  EXPECT_EQ(vocabulary.merges.size(), 1U);
  EXPECT_EQ(vocabulary.bos, 4);
  EXPECT_EQ(vocabulary.eos, 5);
  EXPECT_EQ(checkpoint.chat_template(), "{{ messages }}");
  EXPECT_EQ(checkpoint.chat_template("tools"), "{{ tools }}");
  EXPECT_EQ(checkpoint.chat_template("other"), std::nullopt);
  EXPECT_EQ(checkpoint.chat_template_names(), std::vector<std::string>{"tools"});
  EXPECT_THROW(checkpoint.folder_file("config.json"), InternalError);
}

TEST(CheckpointTokenizer, ReadsTheTokenizerOfAFolder) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("tokenizer.json", kTokenizer);
  const auto plain = Checkpoint::open(folder.path()).vocabulary();
  EXPECT_EQ(plain.tokens.size(), 6U);
  EXPECT_EQ(plain.bos, 4);
  EXPECT_EQ(plain.eos, 5);
  EXPECT_EQ(plain.end_of_generation, std::vector<int>{5});
  folder.add("generation_config.json", R"({"eos_token_id": [2, 5]})");
  folder.add("tokenizer_config.json",
             R"({"bos_token": {"content": "c"}, "eos_token": "<s>", "pad_token": "</s>", "unk_token": null})");
  const auto named = Checkpoint::open(folder.path()).vocabulary();
  EXPECT_EQ(named.bos, 2);
  EXPECT_EQ(named.eos, 4);
  EXPECT_EQ(named.padding, 5);
  EXPECT_EQ(named.end_of_generation, (std::vector<int>{2, 4, 5}));
  folder.add("generation_config.json", R"({"eos_token_id": 6})");
  const auto beyond = Checkpoint::open(folder.path()).vocabulary();
  EXPECT_EQ(beyond.end_of_generation, (std::vector<int>{4, 5})) << "config.json has another";
  ASSERT_EQ(beyond.warnings.size(), 1U);
  EXPECT_NE(beyond.warnings[0].find("eos_token_id 6 is left out"), std::string::npos);
}

TEST(CheckpointTokenizer, EachFileOfAFolderMayNameAnEnd) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("tokenizer.json", kTokenizer);
  folder.add("generation_config.json", R"({"eos_token_id": [2]})");
  EXPECT_EQ(Checkpoint::open(folder.path()).vocabulary().end_of_generation, (std::vector<int>{2, 5}));
  Json config = Json::parse(kConfig);
  config["text_config"] = config;
  config["text_config"]["eos_token_id"] = {1, 3};
  config["text_config"]["bos_token_id"] = 0;
  folder.add("config.json", config.dump());
  const Vocabulary vocabulary = Checkpoint::open(folder.path()).vocabulary();
  EXPECT_EQ(vocabulary.end_of_generation, (std::vector<int>{1, 2, 3, 5}));
  EXPECT_EQ(vocabulary.bos, 0) << "that of the model for text";
}

TEST(CheckpointTokenizer, FindsTheChatTemplateOfAFolder) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.chat_template(), std::nullopt);
  folder.add("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(checkpoint.chat_template(), "from json");
  folder.add("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(checkpoint.chat_template(), "from config");
  EXPECT_EQ(checkpoint.chat_template("tools"), std::nullopt);
  folder.add("tokenizer_config.json", R"({"chat_template": [{"name": "tools", "template": "T"},
      {"name": "default", "template": "D"}]})");
  EXPECT_EQ(checkpoint.chat_template(), "D");
  EXPECT_EQ(checkpoint.chat_template("tools"), "T");
  EXPECT_EQ(checkpoint.chat_template_names(), std::vector<std::string>{"tools"});
  for (const auto& [list, wanted] :
       {std::pair{R"([{"name": "a", "template": "A"}, {"name": "default"}])",
                  "tokenizer_config.json] wanted chat_template[1].template, a text"},
        {R"([{"template": "A"}])", "tokenizer_config.json] wanted chat_template[0].name"}}) {
    folder.add("tokenizer_config.json", std::string(R"({"chat_template": )") + list + "}");
    const std::string message = message_of([&] { checkpoint.chat_template(); });
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
  }
  folder.add("tokenizer_config.json", R"({"chat_template": [{"name": "tools", "template": "T"}]})");
  std::filesystem::create_directory(folder / "additional_chat_templates");
  folder.add("additional_chat_templates/rag.jinja", "R");
  EXPECT_EQ(checkpoint.chat_template("rag"), "R");
  EXPECT_EQ(checkpoint.chat_template("../chat_template"), std::nullopt);
  folder.add("chat_template.jinja", "from jinja\n");
  EXPECT_EQ(checkpoint.chat_template(), "from jinja\n");
  EXPECT_EQ(checkpoint.chat_template("tools"), "T");
  folder.add("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_THROW(checkpoint.chat_template("tools"), UserError);
}

TEST(CheckpointTokenizer, TemplatesInASubfolderAreFilesOfTheModel) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("tokenizer.json", kTokenizer);
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.text_names(), std::vector<std::string>{"tokenizer.json"});
  std::filesystem::create_directories(folder / "additional_chat_templates/inner");
  folder.add("additional_chat_templates/tool_use.jinja", "TOOLS");
  folder.add("additional_chat_templates/rag.jinja", "RAG");
  folder.add("additional_chat_templates/README.md", "no template");
  folder.add("additional_chat_templates/inner/deep.jinja", "no one reads it");
  const std::vector<std::string> wanted{"tokenizer.json", "additional_chat_templates/rag.jinja",
                                        "additional_chat_templates/tool_use.jinja"};
  EXPECT_EQ(checkpoint.text_names(), wanted);
  EXPECT_EQ(checkpoint.chat_template_names(), (std::vector<std::string>{"rag", "tool_use"}));
  folder.add("tokenizer_config.json",
             R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "rag", "template": "other"},
                 {"name": "plain", "template": "P"}]})");
  EXPECT_EQ(checkpoint.chat_template_names(), (std::vector<std::string>{"plain", "rag", "tool_use"}));
  EXPECT_EQ(checkpoint.chat_template("rag"), "RAG");
}

TEST(CheckpointTokenizer, RefusesGenerationConfigsOutOfBounds) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  const auto checkpoint = Checkpoint::open(folder.path());
  for (const auto text :
       {R"({"temperature": -1})", R"({"temperature": "1"})", R"({"top_p": 1.5})", R"({"top_k": -2})",
        R"({"repetition_penalty": 0})", R"({"top_k": 1.5})", R"({"num_beams": 4})", R"({"do_sample": 1})", "[]", ""}) {
    folder.add("generation_config.json", text);
    EXPECT_THROW(checkpoint.generation_config(), UserError) << text;
  }
  folder.add("generation_config.json", R"({"temperature": "1", "top_k": 50.0, "mine": 1})");
  const std::vector<std::string_view> overridden = {"temperature"};
  const auto config = checkpoint.generation_config(overridden);
  EXPECT_EQ(config.temperature, std::nullopt);
  EXPECT_EQ(config.top_k, 50);
  EXPECT_EQ(config.unknown_keys, std::vector<std::string>{"mine"});
}

// As transformers: the tokens that tokenizer_config.json names are special, and its marks of added tokens count.
TEST(CheckpointTokenizer, TheConfigMarksTokensOfTokenizerJson) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("tokenizer.json", kTokenizer);
  folder.add("tokenizer_config.json", R"({"pad_token": "ab", "additional_special_tokens": ["c", "not there"],
    "added_tokens_decoder": {"4": {"content": "<s>", "lstrip": true, "special": true},
                             "77": {"content": "b", "special": false}, "9": {"content": "nowhere"}}})");
  const Vocabulary vocabulary = Checkpoint::open(folder.path()).vocabulary();
  EXPECT_EQ(vocabulary.tokens.size(), 6U);
  EXPECT_EQ(vocabulary.kinds[3], TokenKind::control);
  EXPECT_EQ(vocabulary.kinds[2], TokenKind::control);
  EXPECT_EQ(vocabulary.kinds[1], TokenKind::user_defined) << "by its text, with the id of tokenizer.json";
  const auto added = [&](int id) {
    return *std::find_if(vocabulary.added_tokens.begin(), vocabulary.added_tokens.end(),
                         [&](const AddedToken& one) { return one.id == id; });
  };
  EXPECT_TRUE(added(4).strip_left);
  EXPECT_FALSE(added(5).strip_left);
}

TEST(CheckpointTokenizer, TheConfigDecidesAboutASpaceBeforeTheText) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("tokenizer.json", kTokenizer);
  const auto has_space = [&] {
    const auto steps = Checkpoint::open(folder.path()).vocabulary().steps;
    return std::any_of(steps.begin(), steps.end(),
                       [](const auto& step) { return std::holds_alternative<PrefixSpace>(step); });
  };
  EXPECT_FALSE(has_space());
  folder.add("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_TRUE(has_space());
  folder.add("tokenizer_config.json", R"({"add_prefix_space": null})");
  EXPECT_FALSE(has_space());
}

TEST(CheckpointTokenizer, OnlyAVocabularyOfMergedTokensWantsMerges) {
  const auto read = [](const std::vector<std::string>& tokens) {
    const TemporaryFolder folder;
    const std::vector<std::int32_t> types{1, 1, 3};
    write(folder / "tiny.gguf", GgufBytes()
                                    .text("general.architecture", "llama")
                                    .text("tokenizer.ggml.model", "gpt2")
                                    .text("tokenizer.ggml.pre", "gpt-2")
                                    .texts("tokenizer.ggml.tokens", tokens)
                                    .i32s("tokenizer.ggml.token_type", types)
                                    .bytes());
    return Checkpoint::open(folder / "tiny.gguf").vocabulary().tokens.size();
  };
  EXPECT_EQ(read({"a", "\u0120", "<eos>"}), 3U);
  EXPECT_NE(message_of([&] { read({"a", "ab", "<eos>"}); }).find("tokenizer.ggml.merges"), std::string::npos);
}

}  // namespace weft::checkpoint_tokenizer_test
