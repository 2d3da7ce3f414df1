// The whole program on the fake device: kernels of provider cuda run in the emulator, all others on the host.

#include <filesystem>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

constexpr const char* kPrompt = "The capital of France is";

TEST_F(FakeCudaDevice, GeneratesTheTextOfTheCpu) {
  const auto text_on = [&](const char* device) {
    return output({"complete", "--device", device, "--dtype", "f32", "-n", "16", "--temp", "0", "-p", kPrompt});
  };
  const std::string text = text_on("cpu");
  EXPECT_GT(text.size(), 20u);
  EXPECT_EQ(text_on("fake-cuda"), text);
}

// In bf16 two tokens may be as likely as each other: what follows then says nothing.
TEST_F(FakeCudaDevice, GeneratesTheTextOfTheCpuInBf16UpToTheFirstSmallMargin) {
  const auto text_on = [&](const char* device) {
    return kPrompt +
           output({"complete", "--device", device, "--dtype", "bf16", "-n", "16", "--temp", "0", "-p", kPrompt});
  };
  const auto ids_of = [&](const std::string& text) {
    return nlohmann::json::parse(output({"tokenize", "-p", text})).get<std::vector<int>>();
  };
  const std::string text = text_on("cpu");
  const std::vector<int> wanted = ids_of(text), came = ids_of(text_on("fake-cuda"));
  std::istringstream lines(output({"logits", "--dtype", "bf16", "--positions", "all", "-p", text}));
  std::size_t compared = ids_of(kPrompt).size();
  std::string line;
  for (std::size_t position = 0; std::getline(lines, line) && position + 1 < wanted.size(); ++position) {
    const auto top = nlohmann::json::parse(line).at("top");
    if (position + 1 < compared) continue;
    if (top.at(0).at(1).get<double>() - top.at(1).at(1).get<double>() < 0.1) break;
    ASSERT_LT(compared, came.size());
    EXPECT_EQ(came[compared], wanted[compared]) << "token " << compared;
    ++compared;
  }
  EXPECT_GE(compared, ids_of(kPrompt).size() + 4) << "a margin is small so soon that nothing was compared";
}

TEST_F(FakeCudaDevice, RunsAllButProductsAndPackedRowsByKernelsOfCuda) {
  const std::string explained = output({"explain", "--device", "fake-cuda"});
  for (const char* op : {"fused_add_rms_norm_per_token_group_quant_int8", "silu_and_mul_per_token_group_quant_int8",
                         "fused_rope_kv_cache_update", "attention", "index_select"})
    EXPECT_TRUE(std::regex_search(explained, std::regex(std::string(op) + " +cuda "))) << op << "\n" << explained;
}

}  // namespace weft::fake_device_slow_test
