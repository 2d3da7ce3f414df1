// The whole program on the fake device: kernels of provider cuda run in the emulator, all others on the host.

#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "base/environment.h"
#include "builtin/models.h"
#include "tests/program_run.h"

namespace weft::fake_device_slow_test {

class FakeCudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(root_ + "/models/" + builtin_models()[0].file))
      GTEST_SKIP() << "the model has not been fetched (make model)";
  }
  // Of the default model; "" where the run failed.
  std::string output(std::vector<std::string> words) const {
    words.insert(words.begin() + 1, builtin_models()[0].name);
    const ProgramRun run = run_weft(words, "", {{"WEFT_CACHE_ROOT", root_}, {"WEFT_DISABLE_COMPILE_CACHE", "1"}});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }

  const std::string root_ = cache_folder(process_environment());
};

TEST_F(FakeCudaDevice, GeneratesTheTextOfTheCpu) {
  for (const char* dtype : {"bf16", "f32"}) {
    const auto text_on = [&](const char* device) {
      return output({"complete", "--device", device, "--dtype", dtype, "-n", "16", "--temp", "0", "-p",
                     "The capital of France is"});
    };
    const std::string text = text_on("cpu");
    EXPECT_GT(text.size(), 20u);
    EXPECT_EQ(text_on("fake-cuda"), text) << dtype;
  }
}

TEST_F(FakeCudaDevice, RunsNormsAndQuantizationsByKernelsOfCuda) {
  const std::string explained = output({"explain", "--device", "fake-cuda"});
  for (const char* op : {"fused_add_rms_norm_per_token_group_quant_int8", "silu_and_mul_per_token_group_quant_int8"})
    EXPECT_TRUE(std::regex_search(explained, std::regex(std::string(op) + " +cuda "))) << op << "\n" << explained;
}

}  // namespace weft::fake_device_slow_test
