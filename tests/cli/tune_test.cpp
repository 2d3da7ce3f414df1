// weft tune and --tuned as a user sees them.

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::tune_test {

// Lets the process write no file beyond this size, until the end of the scope.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_{};
};

class TuneVerb : public ::testing::Test {
 protected:
  ProgramRun tune(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"tune", model_, "-o", database_, "--budget", "99", "--max-num-batched-tokens", "16"};
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
  std::string database_ = folder_ / "tuned.jsonl";
};

TEST_F(TuneVerb, MeasuresOnceAndSaysSo) {
  const ProgramRun first = tune({"--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  const nlohmann::json report = nlohmann::json::parse(first.out);
  EXPECT_EQ(report["known"], 0);
  EXPECT_EQ(report["left"], 0);
  EXPECT_GT(report["unrivalled"], 0);
  const std::string written = read_file(database_, 1 << 20);
  const ProgramRun second = tune();
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.out.find("nothing was measured"), std::string::npos) << second.out;
  EXPECT_EQ(read_file(database_, 1 << 20), written);
}

TEST_F(TuneVerb, WritesWhatTheOtherVerbsRead) {
  ASSERT_EQ(tune().status, 0);
  const std::vector<std::string> words{"complete", model_, "-p", "abc", "-n", "4", "--temp", "0", "--tuned", database_};
  const ProgramRun compiled = run_weft(words);
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  std::vector<std::string> eager_words = words;
  eager_words.push_back("--enforce-eager");
  EXPECT_EQ(run_weft(eager_words).out, compiled.out);
  EXPECT_EQ(run_weft({"explain", model_, "--tuned", database_}).status, 0);
}

TEST_F(TuneVerb, RefusesADatabaseThatIsNone) {
  ASSERT_EQ(tune().status, 0);
  std::string text = read_file(database_, 1 << 20);
  write_then_rename(folder_ / "short", text.substr(0, text.size() / 2));
  text[text.find("\"cpu\"") + 8] ^= 1;
  write_then_rename(folder_ / "edited", text);
  for (const std::string& path : {folder_ / "short", folder_ / "edited", model_, folder_ / "none"}) {
    const std::vector<std::string> words{"complete", model_, "-p", "abc", "--tuned", path};
    EXPECT_EQ(breach_of_refusal(run_weft(words), path), "");
    if (path != folder_ / "none") {
      EXPECT_EQ(breach_of_refusal(run_weft({"tune", model_, "-o", path}), path), "");
    }
  }
  // Measured with two threads, or however many there are, but not with three hundred.
  EXPECT_EQ(breach_of_refusal(run_weft({"complete", model_, "-p", "abc", "--tuned", database_, "-t", "300"}),
                              "measured elsewhere"),
            "");
}

TEST_F(TuneVerb, RefusesWhatItCannotCompareOrWrite) {
  EXPECT_EQ(breach_of_refusal(tune({"--ir-op-priority.linear=cpu"}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--enforce-eager"}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--compile-to", "pure"}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--tuned", database_}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--tuning-budget", "1", "-cc.compile_sizes=1"}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--tuning-budget", "1"}), "[tune]"), "");
  EXPECT_EQ(breach_of_refusal(tune({"--device", "fake-cuda"}), "[tune] measures calls by the host's clock"), "");
  EXPECT_EQ(breach_of_refusal(
                run_weft({"explain", model_, "--device", "fake-cuda", "--tuning-budget", "1", "-cc.compile_sizes=1"}),
                "what fake-cuda:0 does later: wanted --device cpu"),
            "");
  EXPECT_EQ(breach_of_refusal(run_weft({"tune", model_, "--budget", "0"}), "[--budget]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"tune", model_, "other"}), "other"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"tune", model_, "-o", "/nonexistent/t"}), "/nonexistent/t"), "");
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(TuneVerb, PrintsWhatItMeasuredIfItCannotBeWritten) {
  ASSERT_EQ(tune().status, 0);
  const std::size_t size = read_file(database_, 1 << 20).size();
  database_ = folder_ / "other.jsonl";
  ProgramRun run;
  {
    const FileSizeLimit limit(size / 2);  // a database without calls fits
    run = tune();
  }
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_NE(run.err.find("other.jsonl"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("calls were measured"), std::string::npos) << run.out;
}

TEST_F(TuneVerb, MergesDatabases) {
  ASSERT_EQ(tune().status, 0);
  ASSERT_EQ(run_weft({"tune", "merge", database_, database_, "-o", folder_ / "both"}).status, 0);
  EXPECT_EQ(read_file(folder_ / "both", 1 << 20), read_file(database_, 1 << 20));
  const auto json =
      nlohmann::json::parse(run_weft({"tune", "merge", database_, database_, "-o", folder_ / "both", "--json"}).out);
  EXPECT_EQ(json["file"], folder_ / "both");
  EXPECT_EQ(json["known"], nlohmann::json::parse(tune({"--json"}).out)["known"]) << "the same calls as of one";
  EXPECT_EQ(breach_of_refusal(run_weft({"tune", "merge", database_}), "tune merge A B -o C"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"tune", "merge", database_, model_, "-o", folder_ / "c"}), model_), "");
}

TEST_F(TuneVerb, LogsAreAskedForByTopic) {
  const std::vector<std::string> words{"explain", model_};
  EXPECT_EQ(breach_of_refusal(run_weft(words, "", {{"WEFT_LOGS", "+lowring"}}), "did you mean \"lowering\"?"), "");
}

}  // namespace weft::tune_test
