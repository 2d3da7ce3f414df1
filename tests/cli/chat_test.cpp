// weft chat: one line that cannot be answered does not end the conversation.

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::chat_test {

class ChatVerb : public ::testing::Test {
 protected:
  ChatVerb() {
    std::ofstream(model_ + "/tokenizer_config.json")
        << R"({"chat_template": "{% for m in messages %}[{{ m.content }}]{% endfor %}>"})";
  }
  std::vector<nlohmann::json> lines_of(const std::string& input, int status = 0, std::string* err = nullptr) const {
    const ProgramRun run = run_weft({"chat", model_, "-n", "2", "--temp", "0", "--json"}, input);
    EXPECT_EQ(run.status, status) << run.err;
    if (err != nullptr) *err = run.err;
    std::vector<nlohmann::json> lines;
    std::istringstream out(run.out);
    for (std::string line; std::getline(out, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
};

TEST_F(ChatVerb, AnswersTheLineAfterABadOne) {
  const auto alone = lines_of("hi\n");
  ASSERT_EQ(alone.size(), 1U);
  for (const std::string& bad : {std::string(200, 'x'), std::string("a\xff") + "b"}) {
    std::string err;
    const auto lines = lines_of(bad + "\nhi\n", 2, &err);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_TRUE(lines[0].contains("error"));
    EXPECT_TRUE(err.starts_with("weft: [")) << err;
    EXPECT_EQ(lines[1], alone[0]) << "the bad line is no part of the conversation";
  }
}

TEST_F(ChatVerb, AnswersAPromptAndGoesOnIfAsked) {
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"chat", model_, "-n", "2", "--temp", "0", "--json", "-p", "hi"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun result = run_weft(words, "again\n");
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string one = run({}), both = run({"-cnv"});
  EXPECT_EQ(nlohmann::json::parse(one), lines_of("hi\n").at(0));
  EXPECT_TRUE(both.starts_with(one) && both.size() > one.size()) << both;
  EXPECT_EQ(run({"-e", "-st"}), one);
}

TEST_F(ChatVerb, EndsAfterOneTurnAndHasASystemMessageFromAFile) {
  std::ofstream(folder_ / "system.txt") << "be brief";
  const ProgramRun run =
      run_weft({"chat", model_, "-n", "2", "-st", "-sysf", folder_ / "system.txt", "--json"}, "hi\nho\n");
  EXPECT_EQ(run.status, 0) << run.err;
  const nlohmann::json one = nlohmann::json::parse(run.out);
  EXPECT_GT(one["prompt_tokens"], lines_of("hi\n").at(0)["prompt_tokens"]);
  EXPECT_NE(run.err.find("cut at 2 tokens"), std::string::npos) << run.err;
}

TEST_F(ChatVerb, RefusesAStandardInputThatCannotBeRead) {
  std::ifstream folder(folder_.path());
  EXPECT_EQ(breach_of_refusal(run_weft({"chat", model_, "-n", "1"}, folder), "[stdin]"), "");
}

}  // namespace weft::chat_test
