// Tensors that the model does not read, as a user sees them: in verbs that run models, and in weft quantize.

#include <filesystem>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::unread_tensors_verb_test {

class UnreadTensorsVerb : public ::testing::Test {
 protected:
  UnreadTensorsVerb() {
    SampleCheckpoint sample(make_model_registry().find("llama", "test"));
    sample.add("model.layers.1.self_attn.o_proj.bias", "blk.1.attn_output.bias", {64});
    paths_ = {sample.write_folder(folder_, "model", DType::bf16), sample.write_gguf(folder_, "m.gguf", DType::f32)};
  }

  const TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

TEST_F(UnreadTensorsVerb, AreRefusedUnlessTheyAreToBeIgnored) {
  int written = 0;
  for (const std::string& path : paths_) {
    const std::string out = folder_ / ("out" + std::to_string(written++));
    const std::vector<std::string> logits = {"logits", path, "--ids", "[1,2]"},
                                   quantize = {"quantize", path, "--format", "bf16", "-o", out};
    for (std::vector<std::string> words : {logits, quantize}) {
      EXPECT_EQ(breach_of_refusal(run_weft(words), "] no weight of the model reads "), "") << words[0];
      EXPECT_FALSE(std::filesystem::exists(out));
      words.emplace_back("--ignore-unread-tensors");
      const ProgramRun run = run_weft(words);
      EXPECT_EQ(run.status, 0) << run.err;
      EXPECT_NE(run.err.find("] no weight of the model reads "), std::string::npos) << run.err;
      std::filesystem::remove_all(out);
    }
  }
}

TEST_F(UnreadTensorsVerb, UnknownKeysAreALineOfTheLog) {
  SampleCheckpoint sample(make_model_registry().find("llama", "test"), {{"mine", 1}});
  const std::string path = sample.write_folder(folder_, "keys", DType::bf16);
  const std::vector<std::string> words = {"logits", path, "--ids", "[1,2]"};
  EXPECT_EQ(run_weft(words).err, "");
  // The log of the process: a run logs to standard error itself.
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_weft({"logits", path, "--ids", "[1,2]", "--logs", "+config"}).status, 0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("[config] " + path + ": nothing is known of mine"), std::string::npos) << said;
}

}  // namespace weft::unread_tensors_verb_test
