// What weft explain says of the functions that were generated for a device.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "codegen/compile_rows.h"
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

}  // namespace weft::explain_device_test
