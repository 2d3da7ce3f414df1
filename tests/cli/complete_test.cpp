// What weft complete and weft explain say of memory.

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

}  // namespace weft::complete_test
