// What bench verbs do before they measure: they read lists of flags, and check that their results can be written.

#include "apps/cli/result_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::result_file_test {

class ResultFile : public ::testing::Test {
 protected:
  std::vector<std::string> names() const { return folder_names(folder_ / ""); }
  ProgramRun bench(const std::string& verb, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"bench", verb};
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  }
  // A short benchmark of a server.
  ProgramRun serve(std::vector<std::string> words) const {
    words.insert(words.end(), {"--random-input-len", "5", "--random-output-len", "3", "--num-prompts", "2"});
    return bench("serve", words);
  }

  const TemporaryFolder folder_;
};

TEST_F(ResultFile, ChecksLeaveEverythingAsItIs) {
  const std::string old = folder_ / "old.json";
  std::ofstream(old) << "kept";
  std::filesystem::create_symlink(old, folder_ / "link.json");
  const std::vector<std::string> before = names();
  for (const std::string& path : {folder_ / "new.json", old, folder_ / "link.json", std::string("/dev/null")}) {
    check_can_write(path, "--flag");
    check_can_append(path, "--flag");
  }
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read_file(old, 100), "kept");
  for (const std::string& path : {folder_ / "none/x.json", folder_ / "", old + "/x.json", folder_ / "none/"}) {
    EXPECT_THROW(check_can_write(path, "--flag"), UserError) << path;
    EXPECT_THROW(check_can_append(path, "--flag"), UserError) << path;
  }
  EXPECT_EQ(names(), before);
}

// There is no model, so that a check after the model was opened would be seen.
TEST_F(ResultFile, VerbsCheckItFirst) {
  const std::string nowhere = folder_ / "none/x.json";
  for (const char* verb : {"latency", "throughput"})
    EXPECT_EQ(breach_of_refusal(bench(verb, {"no-such-model", "--output-json", nowhere}), "[--output-json]"), "");
  EXPECT_EQ(breach_of_refusal(bench("startup", {"no-such-model", "--output-json", nowhere}), "[--output-json]"), "");
  for (const char* flag : {"--save-result", "--append-result"})
    EXPECT_EQ(breach_of_refusal(serve({"no-such-model", flag, "--result-filename", nowhere}), "[--result-filename]"),
              "");
  EXPECT_TRUE(names().empty());
}

TEST_F(ResultFile, ALabelMayHaveSlashes) {
  const std::string model =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
  const ProgramRun run = serve({model, "--save-result", "--result-dir", folder_ / "out/results", "--label", "a/b"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> saved = folder_names(folder_ / "out/results");
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_TRUE(saved[0].starts_with("a_b-")) << saved[0];
  EXPECT_EQ(parse_json(read_file(folder_ / "out/results/" + saved[0], 1 << 20))["label"], "a/b");
}

TEST_F(ResultFile, ListsMayBeInFrontOfTheModel) {
  const std::string model =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
  const ProgramRun run = serve({"--goodput", "e2el:1000000", "ttft:0.000001", "--metadata", "x=1", "y=2", "--model",
                                model, "--json", "--header", "X-A=1", "X-B=2"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out);
  EXPECT_EQ(json["request_goodput"], 0) << "the second limit counts";
  EXPECT_EQ(json["x"], "1");
  EXPECT_EQ(json["y"], "2");
  // No model is given, and no server that could name one is at that port.
  EXPECT_EQ(breach_of_refusal(serve({"--port", "1", "--goodput", "ttft:500", "tpot:50"}), "[--model]"), "");
}

}  // namespace weft::result_file_test
