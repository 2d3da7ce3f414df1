// Words of the command line that are no verb, no option, no number or out of bounds; prompts that cannot be used.

#include <iostream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apps/cli/tensor_file.h"
#include "options/options.h"
#include "options/options_text.h"
#include "tests/errors/tiny_files.h"

namespace weft::arguments_test {

using Words = std::vector<std::string>;

class Arguments : public ::testing::Test {
 protected:
  // A verb for the tiny model, followed by more words.
  ProgramRun run(const Words& verb, const Words& more, const std::string& input = "") const {
    Words words = verb;
    words.push_back(model_);
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words, input);
  }
  void expect_refused(const Words& verb, const Words& more, const std::string& part) const {
    EXPECT_EQ(breach_of_refusal(run(verb, more), part), "") << fmt::format("{} {}", verb[0], more.back());
  }

  const TemporaryFolder folder_;
  const std::string model_ = tiny_checkpoint().write_gguf(folder_, "m.gguf", DType::q8_0);
};

// Values that no numeric option accepts: a text, not a number, beyond 64 bits.
const char* const kNeverNumbers[] = {"",      "abc",  "nan", "NaN", "-nan",  "inf",  "-inf",
                                     "1e999", "0x10", "1 2", "--",  "12abc", "\xff", "99999999999999999999"};

TEST_F(Arguments, EveryNumberOfTheOptionsTableIsChecked) {
  int tried = 0;
  for (const OptionRow& row : option_table()) {
    const bool is_count = std::holds_alternative<std::int64_t Options::*>(row.member);
    const bool is_list = std::holds_alternative<Counts Options::*>(row.member);
    if (!is_count && !is_list) continue;
    std::vector<std::string> wrong(std::begin(kNeverNumbers), std::end(kNeverNumbers));
    for (const char* number : {"-1", "-99999999999", "1e3", "2.5", "9223372036854775807"}) wrong.push_back(number);
    const bool has_automatic = is_count && value_text(Options(), row) == "auto";
    if (has_automatic) std::erase(wrong, "-1");  // the same
    if (is_list) std::erase(wrong, "");          // an empty list
    if (is_list) std::erase(wrong, "1 2");
    const std::string flag = (row.name.starts_with("cc.") ? "-" : "--") + std::string(row.name);
    for (const std::string& number : wrong) {
      const ProgramRun refused = run({"complete"}, {"-p", "abc", "-n", "1", flag + "=" + number});
      EXPECT_EQ(breach_of_refusal(refused, std::string(row.name)), "") << flag << "=" << number;
      ++tried;
    }
  }
  std::cout << "wrong numbers of the options table: " << tried << "\n";
  EXPECT_GT(tried, 100);
}

TEST_F(Arguments, EveryNumberOfTheVerbsIsChecked) {
  struct Numbers {
    Words verb;
    Words before;
    Words flags;
    Words also_wrong;
  };
  const Words prompt{"-p", "abc"}, small{"-r", "1", "-pg", "4,1"};
  const Numbers all[] = {
      {{"complete"}, prompt, {"--max-tokens"}, {"-2", "2.5", "0"}},
      {{"complete"}, prompt, {"--temp", "--repeat-penalty"}, {"-1", "-0.5", "1e40"}},
      {{"complete"}, prompt, {"--frequency-penalty", "--presence-penalty"}, {"1e40", "-1e40"}},
      {{"complete"}, prompt, {"--top-k"}, {"-2", "2.5", "-99999999999"}},
      {{"complete"}, prompt, {"--top-p", "--min-p"}, {"-0.5", "1.5", "1e40"}},
      {{"complete"}, prompt, {"--seed"}, {"-2", "2.5"}},
      {{"chat"}, {}, {"--max-tokens"}, {"-2", "2.5"}},
      {{"chat"}, {}, {"--temp", "--top-p"}, {"-1"}},
      {{"logits"}, prompt, {"--top-k"}, {"-1", "2.5"}},
      {{"logits"}, prompt, {"--positions"}, {"-1", "3", "2.5", "1,,2", "99999999999"}},
      {{"bench", "model"}, small, {"--n-prompt", "--n-gen", "--n-depth"}, {"-1", "2.5", "33", "9223372036854775807"}},
      {{"bench", "model"}, small, {"--repetitions"}, {"-1", "0", "2.5", "9223372036854775807"}},
      {{"bench", "model"}, small, {"--threads"}, {"-1", "0", "1,0", "1,-1", "1,,2", "2.5", "100000"}},
      {{"bench", "model"}, small, {"-pg"}, {"-1,2", "1", "1,2,3", "0,0", "9223372036854775807,9223372036854775807"}},
  };
  int tried = 0;
  for (const Numbers& numbers : all)
    for (const std::string& flag : numbers.flags) {
      Words wrong(std::begin(kNeverNumbers), std::end(kNeverNumbers));
      if (flag == "--threads") std::erase(wrong, "");
      wrong.insert(wrong.end(), numbers.also_wrong.begin(), numbers.also_wrong.end());
      for (const std::string& number : wrong) {
        Words more = numbers.before;
        more.insert(more.end(), {flag, number});
        EXPECT_EQ(breach_of_refusal(run(numbers.verb, more, "abc\n")), "")
            << numbers.verb[0] << " " << flag << " '" << number << "'";
        ++tried;
      }
    }
  std::cout << "wrong numbers of the verbs: " << tried << "\n";
}

TEST_F(Arguments, NameTheNearestThatIsKnown) {
  EXPECT_EQ(breach_of_refusal(run_weft({"complte"}), "\"complete\""), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bnech", "model"}), "\"bench\""), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "modle", "m"}), "\"model\""), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"graph", "vrify", "m"}), "\"verify\""), "");
  expect_refused({"complete"}, {"-p", "abc", "--tmep", "0"}, "\"temp\"");
  expect_refused({"complete"}, {"-p", "abc", "--kv-cache-dtyp", "f32"}, "\"kv-cache-dtype\"");
  expect_refused({"complete"}, {"-p", "abc", "-cc.splitting_op=[]"}, "\"cc.splitting_ops\"");
  expect_refused({"complete"}, {"-p", "abc", "--compilation-config", R"({"pass_confg": {}})"}, "pass_config");
  expect_refused({"bench", "model"}, {"--n-prmpt", "1"}, "\"n-prompt\"");
  expect_refused({"logits"}, {"-p", "abc", "--postions", "last"}, "\"positions\"");
  expect_refused({"complete"}, {"-p", "abc", "--skip-pass", "spilt"}, "\"split\"");
  expect_refused({"complete"}, {"-p", "abc", "--compile-to", "lowerd"}, "lowered");
  expect_refused({"complete"}, {"-p", "abc", "--dtype", "f7"}, "dtype");
  expect_refused({"complete"}, {"-p", "abc", "--device", "cdua"}, "device");
  expect_refused({"complete"}, {"-p", "abc", "--ir-op-priority.rms_nrm=cpu"}, "\"rms_norm\"");
  expect_refused({"complete"}, {"-p", "abc", "--ir-op-priority.rms_norm=cpuu"}, "\"cpu\"");
}

TEST_F(Arguments, OfSkippedPassesAreRefusedWhereLaterOnesNeedThem) {
  for (const char* pass : {"functionalize", "lower", "split"})
    expect_refused({"complete"}, {"-p", "abc", "--skip-pass", pass}, "--skip-pass");
  for (const char* stage : {"lowered", "split", "plan"}) {
    // A note on --compile-to may come first.
    const ProgramRun refused =
        run({"complete"}, {"-p", "abc", "--skip-pass", "clone_elimination", "--compile-to", stage});
    EXPECT_EQ(refused.status, 2) << stage;
    EXPECT_NE(refused.err.find("clone_elimination cannot be skipped"), std::string::npos) << refused.err;
  }
}

TEST_F(Arguments, OfAnOpMayNotCopyKvPages) {
  const Meta pages = Meta::pages({.dtype = DType::f32, .block = 4, .heads = 1, .head_dim = 16});
  write_results(folder_ / "kv", {{"x", Tensor::empty(pages, 3)}});
  EXPECT_EQ(breach_of_refusal(run_weft({"op", "clone", "--in", folder_ / "kv", "--out", folder_ / "out"}), "KV pages"),
            "");
}

TEST_F(Arguments, TakeAPromptOfUtf8Only) {
  for (const char* text : {"\xff", "abc\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    expect_refused({"complete"}, {"-p", text}, "prompt");
    expect_refused({"tokenize"}, {"-p", text}, "prompt");
    expect_refused({"logits"}, {"-p", text}, "prompt");
    EXPECT_EQ(breach_of_refusal(run({"complete"}, {"-p", "-"}, text), "prompt"), "");
    EXPECT_EQ(breach_of_refusal(run({"chat"}, {}, text)), "");
    write_bytes(folder_ / "prompt.txt", text);
    expect_refused({"complete"}, {"-f", folder_ / "prompt.txt"}, "prompt");
  }
  expect_refused({"complete"}, {"-f", folder_ / "none.txt"}, "none.txt");
  expect_refused({"complete"}, {"-f", folder_.path()}, folder_.path());
  expect_refused({"complete"}, {"-p", ""}, "prompt");
}

TEST_F(Arguments, TakeAPromptThatFitsTheContextOnly) {
  const std::string full(32, 'a');
  expect_refused({"complete"}, {"-p", full}, "context of 32 tokens, but has 32");
  expect_refused({"complete"}, {"-p", full.substr(0, 8), "--max-model-len", "8"}, "context of 8 tokens, but has 8");
  expect_refused({"logits"}, {"-p", full + "a"}, "32");
  expect_refused({"complete"}, {"-p", "abc", "--max-model-len", "33"}, "[--max-model-len]");
  const ProgramRun longest = run({"complete"}, {"-p", full.substr(1), "-n", "5", "--ignore-eos"});
  EXPECT_EQ(longest.status, 0) << longest.err;
}

TEST_F(Arguments, TakeTokenIdsOfTheVocabularyOnly) {
  for (const char* ids : {"[9]", "[-1]", "[2147483648]", "[1.5]", "[\"a\"]", "{}", "[", "[]", "nan", "[1e99]"})
    expect_refused({"logits"}, {"--ids", ids}, "");
  for (const char* ids : {"[9]", "[-1]", "[2147483648]", "[1.5]", "{}", "["}) expect_refused({"detokenize"}, {ids}, "");
}

}  // namespace weft::arguments_test
