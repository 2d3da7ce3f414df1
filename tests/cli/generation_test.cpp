// The small files of a folder that concern text, as a user sees them: generation_config.json compared with flags, ends
// beyond the vocabulary, special tokens as stop texts, named chat templates.

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::generation_test {

class Generation : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(model_ + "/" + name) << text; }
  ProgramRun complete(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"complete", model_, "-p", "hi", "-n", "3", "--json"});
    return run_weft(flags);
  }

  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{make_model_registry().find("llama", "test")};
  const std::string model_ = sample_.write_folder(folder_, "model", DType::bf16);
};

TEST_F(Generation, FlagsWinOverWhateverTheFileSays) {
  write("generation_config.json", R"({"do_sample": true, "top_k": 1.5, "top_p": 0.0, "temperature": "hot"})");
  EXPECT_EQ(complete({"--top-k", "5", "--top-p", "0.9", "--temp", "0"}).status, 0);
  EXPECT_EQ(complete({"--generation-config", "none"}).status, 0);
  EXPECT_EQ(breach_of_refusal(complete({"--top-p", "0.9", "--temp", "0"}), "generation_config.json] top_k must be"),
            "");
  EXPECT_EQ(breach_of_refusal(complete({"--generation-config", "some"}), "[--generation-config]"), "");
  EXPECT_EQ(run_weft({"tokenize", model_, "-p", "hi"}).status, 0);
  write("generation_config.json", R"({"top_k": 50.0, "do_sample": true})");
  EXPECT_EQ(complete({}).status, 0);
  write("generation_config.json", R"({"top_k": -1, "do_sample": true})");
  EXPECT_EQ(complete({}).status, 0);
}

TEST_F(Generation, ARefusedFileNamesTheFlagThatLeavesItOut) {
  for (const char* text : {R"({"num_beams": 4})", R"({"stop_strings": ["x"]})", R"({"typical_p": 0.5})",
                           R"({"no_repeat_ngram_size": 3})", R"({"top_p": 2.0})"}) {
    write("generation_config.json", text);
    EXPECT_EQ(breach_of_refusal(complete({}), "; --generation-config none"), "") << text;
    EXPECT_EQ(complete({"--generation-config", "none"}).status, 0) << text;
  }
}

TEST_F(Generation, AnEndBeyondTheVocabularyIsAWarning) {
  write("generation_config.json", R"({"eos_token_id": [256, 99999]})");
  for (const ProgramRun& run : {complete({"--temp", "0"}), run_weft({"tokenize", model_, "-p", "hi"})}) {
    EXPECT_EQ(run.status, 0);
    EXPECT_NE(run.err.find("eos_token_id 99999 is left out"), std::string::npos) << run.err;
  }
}

TEST_F(Generation, ASpecialTokensTextStopsThere) {
  auto tokenizer = nlohmann::json::parse(sample_.tokenizer_json());
  const auto whole = nlohmann::json::parse(complete({"--temp", "0", "--ignore-eos"}).out);
  // The second token of the answer becomes a special one.
  const int id = whole["tokens"][1];
  ASSERT_LT(id, 256);
  ASSERT_NE(whole["tokens"][0], id);
  for (auto at = tokenizer["model"]["vocab"].begin(); at != tokenizer["model"]["vocab"].end(); ++at)
    if (at.value() == id) {
      tokenizer["model"]["vocab"].erase(at);
      break;
    }
  tokenizer["added_tokens"].push_back({{"id", id}, {"content", "<|mid|>"}, {"special", true}});
  write("tokenizer.json", tokenizer.dump());
  const auto stopped = nlohmann::json::parse(complete({"--temp", "0", "--ignore-eos", "--stop", "<|mid|>"}).out);
  EXPECT_EQ(stopped["finish_reason"], "stop");
  EXPECT_EQ(stopped["tokens"].size(), 2U);
}

TEST_F(Generation, NamedTemplatesAreChosenByToolsOrByName) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "D"},
      {"name": "tool_use", "template": "T{{ tools|length }}"}, {"name": "rag", "template": "R"}]})");
  std::ofstream(folder_ / "file.jinja") << "F";
  const auto rendered = [&](const std::string& input, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"template", model_, "--messages", "-"});
    return run_weft(flags, input);
  };
  const std::string plain = R"([{"role": "user", "content": "x"}])";
  const std::string tools = R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]})";
  EXPECT_EQ(rendered(plain, {}).out, "D");
  EXPECT_EQ(rendered(tools, {}).out, "T1");
  EXPECT_EQ(rendered(tools, {"--chat-template", "rag"}).out, "R");
  EXPECT_EQ(rendered(tools, {"--chat-template", "default"}).out, "D");
  EXPECT_EQ(rendered(tools, {"--chat-template", folder_ / "file.jinja"}).out, "F");
  EXPECT_EQ(breach_of_refusal(rendered(tools, {"--chat-template", "raq"}), "(default, rag, tool_use)"), "");
  EXPECT_EQ(rendered(plain, {"--chat-template-kwargs", R"({"tools": [1, 2]})"}).out, "T2");
  EXPECT_EQ(breach_of_refusal(rendered(plain, {"--chat-template-kwargs", "[]"}), "[--chat-template-kwargs]"), "");
}

TEST_F(Generation, ATemplateHasSwitchesAndCanBeContinued) {
  write("tokenizer_config.json", R"({"chat_template":
      "{% for m in messages %}<{{ m.content }}>{% endfor %}{{ mode | default('-') }}{{ '!' if add_generation_prompt }}"})");
  const auto rendered = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"template", model_, "--messages", "-"});
    return run_weft(flags, R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y "}])").out;
  };
  EXPECT_EQ(rendered({}), "<x><y >-!");
  EXPECT_EQ(rendered({"--chat-template-kwargs", R"({"mode": "slow"})"}), "<x><y >slow!");
  EXPECT_EQ(rendered({"--no-generation-prompt"}), "<x><y >-");
  EXPECT_EQ(rendered({"--continue-final-message"}), "<x><y ");
}

}  // namespace weft::generation_test
