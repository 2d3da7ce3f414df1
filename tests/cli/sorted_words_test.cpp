#include "apps/cli/sorted_words.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace weft::sorted_words_test {

using Words = std::vector<std::string>;

// The verb has the flags -m/--model, --port, -n, the switch --a-switch, and the lists --name and --pair.
SortedWords sorted(const std::string& line) {
  const auto takes_value = [](const std::string& flag) -> std::optional<bool> {
    if (flag == "--a-switch") return false;
    for (const char* known : {"-m", "--model", "--port", "--max-port", "-n", "--name", "--pair"})
      if (flag == known) return true;
    return std::nullopt;
  };
  return {split_text(line, ' '),
          {.takes_value = takes_value,
           .lists = {{.name = "--name"}, {.name = "--pair", .separator = '='}},
           .model_flags = {"-m", "--model"}}};
}

std::string spread(const std::string& line) {
  std::string text;
  for (const std::string& word : sorted(line).spread()) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(SortedWords, ListsMayBeBeforeOrAfterTheModel) {
  const std::string list = "--name a --name b --name c";
  EXPECT_EQ(spread("M --name a b c"), "M " + list);
  EXPECT_EQ(spread("--name a b c --model M"), list + " --model M");
  EXPECT_EQ(spread("--name a b c -m M"), list + " -m M");
  EXPECT_EQ(spread("--name a b c --model=M"), list + " --model=M");
  EXPECT_EQ(spread("--name a b c --port 1 M"), list + " --port 1 M");
  EXPECT_EQ(spread("--port 1 M --name a b c"), "--port 1 M " + list);
  EXPECT_EQ(spread("--a-switch M --name a b c"), "--a-switch M " + list);
}

TEST(SortedWords, TheLastWordAfterAListIsTheModelIfNoOtherWordIs) {
  EXPECT_EQ(spread("--name a M"), "--name a M");
  EXPECT_EQ(spread("--name a b M --port 1"), "--name a --name b M --port 1");
  EXPECT_EQ(spread("--name=a M"), "--name=a M") << "such a list has one value";
}

TEST(SortedWords, WordsWithTheSeparatorAreAlwaysValues) {
  EXPECT_EQ(spread("--port 1 --pair a=1 b=2"), "--port 1 --pair a=1 --pair b=2");
  EXPECT_EQ(spread("--pair a=1 b=2 M"), "--pair a=1 --pair b=2 M");
  EXPECT_EQ(spread("M --pair a=1 b"), "M --pair a=1 --pair b") << "the flag refuses it by its name";
}

TEST(SortedWords, ValuesOfFlagsAreTakenAsTheyAre) {
  EXPECT_EQ(spread("M --port --name a b"), "M --port --name a b") << "as CLI11 reads it";
  EXPECT_EQ(spread("M --name --max_port b"), "M --name --max_port --name b");
  EXPECT_EQ(spread("M --name -5 -6"), "M --name -5 --name -6") << "numbers";
  EXPECT_EQ(spread("M -n32 --name a b"), "M -n32 --name a --name b");
}

TEST(SortedWords, NamesOfFlagsMayHaveUnderscores) {
  EXPECT_EQ(spread("M --max_port 1 --max_port=a_b --a_switch"), "M --max-port 1 --max-port=a_b --a-switch");
  EXPECT_EQ(spread("M --other_port a_b"), "M --other_port a_b") << "there is no such flag";
  EXPECT_EQ(sorted("M --max_port 1 -- --max_port").flags(), Words{"--max-port"});
}

TEST(SortedWords, RefusesTwoModels) {
  for (const char* line : {"A --model B", "A -m B", "A -mB", "--port 1 A --model=B", "A --port 1 B", "-- A B"}) {
    try {
      sorted(line).check_one_model();
      ADD_FAILURE() << line;
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("[model]")) << message;
      for (const char* model : {"\"A\"", "\"B\""}) EXPECT_NE(message.find(model), std::string::npos) << message;
    }
  }
  for (const char* line : {"A", "A -m A", "--model A --model B", "--name a b --model M", "A --name a b", "--port 1"})
    EXPECT_NO_THROW(sorted(line).check_one_model()) << line;
}

}  // namespace weft::sorted_words_test
