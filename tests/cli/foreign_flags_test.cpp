#include "apps/cli/foreign_flags.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/thrown_message.h"

namespace weft::foreign_flags_test {

using Words = std::vector<std::string>;

struct Translated {
  Words words;
  Words notes;
};

// A verb with the flags -n, --max-tokens, --max-model-len, --kv-cache-dtype, --max-num-seqs, --stop,
// --chat-template-kwargs and the switch --escape.
Translated translated(const Words& words) {
  const FlagsOfVerb verb{
      .name = "speak",
      .takes_value = [](const std::string& flag) -> std::optional<bool> {
        if (flag == "--escape") return false;
        for (const char* known : {"-n", "--max-tokens", "--max-model-len", "--kv-cache-dtype", "--max-num-seqs",
                                  "--stop", "--chat-template-kwargs"})
          if (flag == known) return true;
        return std::nullopt;
      },
      .owner = [](const std::string& flag) { return flag == "--system" ? std::string("chat") : ""; }};
  Translated result;
  result.words = translate_foreign_flags(words, verb, [&](const std::string& note) { result.notes.push_back(note); });
  return result;
}

Words translated_line(const std::string& line) { return translated(split_text(line, ' ')).words; }

std::string problem(const std::string& line) {
  return message_of([&] { translated_line(line); });
}

TEST(ForeignFlags, HaveTheNamesOfThisProgram) {
  const Translated run = translated({"m.gguf", "-c", "4096", "--n_predict=7", "-r", "\n", "-e", "-n", "5"});
  EXPECT_EQ(run.words,
            (Words{"m.gguf", "--max-model-len", "4096", "--max-tokens", "7", "--stop", "\n", "--escape", "-n", "5"}));
  ASSERT_EQ(run.notes.size(), 1u);
  for (const char* pair : {"-c as --max-model-len", "--n-predict as --max-tokens", "-e as --escape"})
    EXPECT_NE(run.notes[0].find(pair), std::string::npos) << run.notes[0];
}

TEST(ForeignFlags, TranslateValues) {
  EXPECT_EQ(translated_line("-c 0"), (Words{"--max-model-len", "auto"}));
  EXPECT_EQ(translated_line("--kv-bits 8"), (Words{"--kv-cache-dtype", "q8_0"}));
  EXPECT_EQ(translated_line("-np -1 m"), Words{"m"}) << "the default";
  EXPECT_EQ(translated_line("--reasoning-budget 0"), (Words{"--chat-template-kwargs", R"({"enable_thinking":false})"}));
  EXPECT_NE(problem("--kv-bits 4").find("[--kv-bits] must be 8, but is \"4\""), std::string::npos);
  EXPECT_NE(problem("--reasoning-budget 100").find("must be -1 or 0"), std::string::npos);
}

TEST(ForeignFlags, ThatDecideNothingAreReportedAndLeftOut) {
  const Translated run =
      translated({"-ngl", "99", "-fa", "on", "-fa", "m", "--jinja", "--mirostat", "0.0", "-sm", "row"});
  EXPECT_EQ(run.words, Words{"m"});
  std::string notes;
  for (const std::string& note : run.notes) notes += note + "\n";
  for (const char* flag : {"-ngl, -sm] are accepted", "-fa", "--jinja] is accepted", "--mirostat"})
    EXPECT_NE(notes.find(flag), std::string::npos) << notes;
  EXPECT_NE(problem("--mirostat 2").find("[--mirostat] must be 0"), std::string::npos);
}

TEST(ForeignFlags, AreRefusedTogether) {
  const std::string message = problem("--max-kv-size -no-cnv --system-prompt Hi m");
  EXPECT_TRUE(message.starts_with("[speak] ")) << message;
  for (const char* part : {"\"--max-kv-size\"", "\"-no-cnv\"", "weft complete", "it is --system of weft chat"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ForeignFlags, OfOneOptionMustAgree) {
  EXPECT_EQ(translated_line("-ctk f16 -ctv f16"), (Words{"--kv-cache-dtype", "f16", "--kv-cache-dtype", "f16"}));
  const std::string message = problem("-ctk f16 -ctv q8_0");
  EXPECT_NE(message.find("[-ctk] and -ctv"), std::string::npos) << message;
  EXPECT_EQ(translated_line("-c 1 -c 2").back(), "2") << "of one flag the last counts";
}

TEST(ForeignFlags, AreNeitherValuesNorBehindTwoDashes) {
  for (const Words& same :
       {Words{"--stop", "-c"}, Words{"-n", "-fa"}, Words{"--", "-c", "-ngl"}, Words{"-"}, Words{""}})
    EXPECT_EQ(translated(same).words, same);
  EXPECT_EQ(translated_line("-zzz 1"), (Words{"-zzz", "1"})) << "unknown ones are the verb's to refuse";
  EXPECT_NE(problem("-c").find("[-c] wanted a value"), std::string::npos);
}

}  // namespace weft::foreign_flags_test
