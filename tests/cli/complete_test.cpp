// Reports of weft complete and weft explain about memory, and the environment's options for them.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::complete_test {

using nlohmann::json;

class KvMemory : public ::testing::Test {
 protected:
  static json report_of(const std::vector<std::string>& words) {
    const ProgramRun ran = run_weft(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(KvMemory, IsWhatStepsOfACompletionTouched) {
  const json done = report_of({"complete", model_, "-p", "abc", "-n", "4", "--ignore-eos", "--json"});
  EXPECT_GT(done["kv_memory_bytes"], 0);
  EXPECT_LT(done["kv_memory_bytes"], done["peak_memory_bytes"]);
}

TEST_F(KvMemory, IsKnownToExplainWhereAStepRan) {
  EXPECT_TRUE(report_of({"explain", model_, "--json"})["memory"]["kv_cache_measured"].is_null());
  EXPECT_GT(report_of({"explain", model_, "--json", "--measure"})["memory"]["kv_cache_measured"], 0);
}

TEST_F(KvMemory, IsNotThatOfADevice) {
  const json done =
      report_of({"complete", model_, "-p", "abc", "-n", "1", "--device", "fake-cuda", "--dtype", "f32", "--json"});
  EXPECT_TRUE(done["kv_memory_bytes"].is_null());
}

TEST_F(KvMemory, CompileToSaysWhatItDoesWhereAModelRuns) {
  const std::vector<std::string> words{"complete", model_, "-p", "abc", "-n", "2", "--ignore-eos"};
  const ProgramRun whole = run_weft(words);
  EXPECT_EQ(whole.err.find("[compile-to]"), std::string::npos) << whole.err;
  std::vector<std::string> stopped_words = words;
  stopped_words.push_back("--compile-to=traced");
  const ProgramRun stopped = run_weft(stopped_words);
  EXPECT_EQ(stopped.status, 0) << stopped.err;
  EXPECT_NE(stopped.err.find("[compile-to]"), std::string::npos) << stopped.err;
  EXPECT_EQ(stopped.out, whole.out);
}

// WEFT_ARG_ and a flag's name in capitals: of verbs, too, of words that need no flag, and of verbs below others.
class MirrorsOfFlags : public KvMemory {
 protected:
  using Variables = std::map<std::string, std::string>;
  static std::string out_of(const std::vector<std::string>& words, const Variables& variables) {
    const ProgramRun ran = run_weft(words, "", variables);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
};

TEST_F(MirrorsOfFlags, CountWhereTheCommandLineSaysNothing) {
  const std::string wanted = out_of({"complete", model_, "-p", "abc", "-n", "3", "--ignore-eos"}, {});
  const Variables all{{"WEFT_ARG_MODEL", model_},
                      {"WEFT_ARG_PROMPT", "abc"},
                      {"WEFT_ARG_MAX_TOKENS", "3"},
                      {"WEFT_ARG_IGNORE_EOS", "true"},
                      {"WEFT_ARG_SYSTEM", ""}};
  EXPECT_EQ(out_of({"complete"}, all), wanted);
  Variables others = all;
  others["WEFT_ARG_MODEL"] = folder_ / "none";
  others["WEFT_ARG_PROMPT"] = "b";
  others["WEFT_ARG_MAX_TOKENS"] = "1";
  EXPECT_EQ(out_of({"complete", model_, "--prompt=abc", "-n3"}, others), wanted);
  EXPECT_NE(out_of({"complete", model_, "-n3"}, others), wanted);
}

TEST_F(MirrorsOfFlags, OfOtherVerbsAreNoConcernOfThisOne) {
  const std::string listed = out_of({"cache", "list"}, {{"WEFT_CACHE_ROOT", folder_ / "cache"}});
  EXPECT_EQ(out_of({"cache", "list"}, {{"WEFT_CACHE_ROOT", folder_ / "cache"}, {"WEFT_ARG_TEMP", "x"}}), listed);
  // Of two options that exclude each other, the one on the command line wins.
  out_of({"cache", "prune", "--all"}, {{"WEFT_CACHE_ROOT", folder_ / "cache"}, {"WEFT_ARG_TO", "1k"}});
}

TEST_F(MirrorsOfFlags, AreRefusedByTheirNames) {
  const auto refused = [&](const std::vector<std::string>& words, const Variables& variables, const char* part) {
    EXPECT_EQ(breach_of_refusal(run_weft(words, "", variables), part), "");
  };
  refused({"complete", model_, "-p", "a"}, {{"WEFT_ARG_MAX_TOKENS", "x"}}, "[WEFT_ARG_MAX_TOKENS]");
  refused({"complete", model_, "-p", "a"}, {{"WEFT_ARG_IGNORE_EOS", "maybe"}}, "[WEFT_ARG_IGNORE_EOS]");
  refused({"cache", "prune"}, {{"WEFT_ARG_TO", "-1"}}, "[WEFT_ARG_TO]");
  refused({"complete", model_, "-p", "a"}, {{"WEFT_ARG_MAX_TOKEN", "1"}}, "did you mean \"WEFT_ARG_MAX_TOKENS\"?");
}

}  // namespace weft::complete_test
