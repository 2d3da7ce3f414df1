// Reports about a device: what runs the functions that were generated for it, and what options cost on it.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "quantize/quantize_checkpoint.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::explain_device_test {

class ExplainOfADevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
  ProgramRun explain(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"explain", model_, "--max-num-batched-tokens", "8",
                                   "--ir-op-priority.rms_norm=native"};
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(ExplainOfADevice, SaysWhoRunsGeneratedFunctionsAndWhy) {
  const ProgramRun on_device = explain({"--device", "fake-cuda", "--json"});
  ASSERT_EQ(on_device.status, 0) << on_device.err;
  const nlohmann::json said = nlohmann::json::parse(on_device.out)["device_functions"];
  ASSERT_TRUE(said.is_object()) << said;
  EXPECT_GE(said["functions"], 1);
  EXPECT_EQ(said["launched"], 0);
  EXPECT_EQ(said["reason"], "a fake device executes no PTX");
  EXPECT_TRUE(said["code"].is_null());
  EXPECT_TRUE(said["compiler"].is_null());
  const ProgramRun as_text = explain({"--device", "fake-cuda"});
  EXPECT_NE(as_text.out.find("\ngenerated for the device: 0 of "), std::string::npos) << as_text.out;
}

TEST_F(ExplainOfADevice, IsNothingOnTheHost) {
  const ProgramRun on_host = explain({"--json"});
  ASSERT_EQ(on_host.status, 0) << on_host.err;
  EXPECT_TRUE(nlohmann::json::parse(on_host.out).at("device_functions").is_null());
}

TEST(NotesOfADevice, SayWhichOptionMakesNumbersOfCodes) {
  const TemporaryFolder folder;
  const ModelDefinition model = make_model_registry().find("llama", "test");
  const nlohmann::json wide{{"hidden_size", 256}, {"intermediate_size", 384}, {"head_dim", 64}};
  const std::string plain = SampleCheckpoint(model, wide, 5).write_folder(folder, "plain", DType::bf16);
  const std::string codes = folder / "codes";
  ThreadPool threads(2);
  quantize_checkpoint(Checkpoint::open(plain), model, {.format = NumberFormat::fp8, .block = {}, .inputs = {}}, codes,
                      threads);
  const std::string note = "weft: --batch-invariant leaves fake-cuda:0 without a kernel that multiplies the codes of ";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"logits", codes, "--ids", "[1,2]"},
                                                {"explain", codes},
                                                {"bench", "model", codes, "-p", "2", "-n", "0", "-r", "1"}}) {
    auto all = words;
    all.insert(all.end(), {"--device", "fake-cuda", "--dtype", "bf16", "--max-num-batched-tokens", "8"});
    const ProgramRun without = run_weft(all);
    all.emplace_back("--batch-invariant");
    const ProgramRun with = run_weft(all);
    EXPECT_EQ(without.status, 0) << without.err;
    EXPECT_EQ(with.status, 0) << with.err;
    EXPECT_EQ(without.err.find("without a kernel that multiplies"), std::string::npos) << without.err;
    EXPECT_NE(with.err.find(note), std::string::npos) << words[0] << ": " << with.err;
  }
}

}  // namespace weft::explain_device_test
