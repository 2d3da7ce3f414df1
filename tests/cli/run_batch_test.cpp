// weft run-batch: files that cannot be read or written, and what is left of a file of earlier results.

#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::run_batch_test {

class RunBatchVerb : public ::testing::Test {
 protected:
  RunBatchVerb() {
    std::ofstream(in_)
        << R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"hi","max_tokens":1}})" << '\n';
    std::ofstream(out_) << "old";
  }
  ProgramRun run(const std::string& model, const std::string& in, const std::string& out) const {
    std::ifstream folder(folder_.path());
    return run_weft({"run-batch", "-m", model, "-i", in, "-o", out}, folder);
  }

  const TemporaryFolder folder_;
  const std::string in_ = folder_ / "in.jsonl", out_ = folder_ / "out.jsonl";
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
};

TEST_F(RunBatchVerb, KeepsEarlierResultsUntilItHasNewOnes) {
  EXPECT_EQ(breach_of_refusal(run(folder_ / "none", in_, out_), "[model]"), "");
  EXPECT_EQ(breach_of_refusal(run(model_, folder_.path(), out_), "[--input-file]"), "");
  EXPECT_EQ(breach_of_refusal(run(model_, "-", out_), "[--input-file]"), "") << "standard input is a folder";
  EXPECT_EQ(read_file(out_, 1000), "old");
  EXPECT_EQ(run(model_, in_, out_).status, 0);
  EXPECT_TRUE(read_file(out_, 1 << 20).starts_with("{")) << "new results replace the old ones";
}

TEST_F(RunBatchVerb, LooksForAnOutputBeforeItLoadsTheModel) {
  for (const std::string& out : {folder_ / "none/out.jsonl", folder_.path()})
    EXPECT_EQ(breach_of_refusal(run(folder_ / "none", in_, out), "[--output-file]"), "") << out;
}

TEST_F(RunBatchVerb, RefusesAFullDisk) {
  const ProgramRun full = run(model_, in_, "/dev/full");
  EXPECT_EQ(full.status, 2);
  EXPECT_NE(full.err.find("[--output-file] \"/dev/full\" could not be written: No space left on device"),
            std::string::npos)
      << full.err;
}

}  // namespace weft::run_batch_test
