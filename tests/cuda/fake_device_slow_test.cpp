// The whole program on the fake device: kernels of provider cuda run in the emulator, and the stand-in of cuBLASLt
// computes products.

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
    if (!std::filesystem::exists(root_ + "/" + builtin_models()[0].file))
      GTEST_SKIP() << "the model has not been fetched (make model)";
  }
  // The text of the default model; "" if the run failed.
  std::string output(std::vector<std::string> words) const {
    words.insert(words.begin() + 1, builtin_models()[0].name);
    const ProgramRun run = run_weft(words, "", {{"WEFT_MODELS_ROOT", root_}});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }

  const std::string root_ = models_folder(process_environment());
};

constexpr const char* kPrompt = "The capital of France is";
using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// On the CPU with the numbers that a GPU is given: weights of blocks are expanded there, and activations not quantized.
Words on_cpu(const char* dtype) {
  return {"--device", "cpu", "--dtype", dtype, "--activation-precision", "exact", "--kv-cache-dtype", "f16"};
}

TEST_F(FakeCudaDevice, GeneratesTheTextOfTheCpu) {
  const Words complete = {"complete", "-n", "16", "--temp", "0", "-p", kPrompt};
  const std::string text = output(joined(complete, on_cpu("f32")));
  EXPECT_GT(text.size(), 20u);
  EXPECT_EQ(output(joined(complete, {"--device", "fake-cuda", "--dtype", "f32"})), text);
}

// In bf16, a GPU's default, two tokens may be equally likely; the text after that is not compared.
TEST_F(FakeCudaDevice, GeneratesTheTextOfTheCpuInBf16UpToTheFirstSmallMargin) {
  const auto text_with = [&](const Words& more) {
    return kPrompt + output(joined({"complete", "-n", "16", "--temp", "0", "-p", kPrompt}, more));
  };
  const auto ids_of = [&](const std::string& text) {
    return nlohmann::json::parse(output({"tokenize", "-p", text})).get<std::vector<int>>();
  };
  const std::string text = text_with(on_cpu("bf16"));
  const std::vector<int> wanted = ids_of(text), came = ids_of(text_with({"--device", "fake-cuda"}));
  std::istringstream lines(output(joined({"logits", "--positions", "all", "-p", text}, on_cpu("bf16"))));
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

TEST_F(FakeCudaDevice, RunsEveryOpByAKernelOrALibraryOfTheDevice) {
  const std::string explained = output({"explain", "--device", "fake-cuda"});
  EXPECT_TRUE(std::regex_search(explained, std::regex("linear +cublaslt "))) << explained;
  for (const char* op : {"embedding", "rms_norm", "fused_add_rms_norm", "silu_and_mul", "fused_rope_kv_cache_update",
                         "attention", "index_select"})
    EXPECT_TRUE(std::regex_search(explained, std::regex(std::string(op) + " +cuda(_mma|_reference)? "))) << op << "\n"
                                                                                                         << explained;
}

}  // namespace weft::fake_device_slow_test
