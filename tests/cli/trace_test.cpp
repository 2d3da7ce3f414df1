// WEFT_TRACE: the trace of a run, for viewers of traces.

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::trace_test {

class TraceOfRun : public ::testing::Test {
 protected:
  // The trace of a completion of four tokens.
  std::vector<Json> events_of(std::vector<std::string> more, std::map<std::string, std::string> environment = {}) {
    std::vector<std::string> words{"complete", model_, "-p", "abc", "-n", "4", "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun plain = run_weft(words);
    environment["WEFT_TRACE"] = path_;
    const ProgramRun ran = run_weft(words, "", environment);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, plain.out);
    return parse_json(read_file(path_, 64u << 20));
  }
  static std::vector<Json> of_category(const std::vector<Json>& events, const std::string& category) {
    std::vector<Json> found;
    for (const Json& event : events)
      if (event["cat"] == category) found.push_back(event);
    return found;
  }
  static std::size_t count(const std::vector<Json>& events, const std::string& category) {
    return of_category(events, category).size();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "trace.json";
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(TraceOfRun, HasTheStartAndEveryStepWithItsLaunches) {
  const std::vector<Json> events = events_of({"--disable-compile-cache"});
  std::vector<std::string> start;
  for (const Json& event : of_category(events, "start")) start.push_back(event["name"]);
  EXPECT_EQ(start, (std::vector<std::string>{"options", "context", "checkpoint", "trace", "compile", "weights",
                                             "capture", "tokenizer", "pages"}));
  EXPECT_GT(count(events, "pass"), 20u);
  EXPECT_EQ(count(events, "compile"), 6u) << "forward and head: generate, stitch, plan_memory";
  EXPECT_EQ(count(events, "capture"), 2u);

  const std::vector<Json> steps = of_category(events, "step"), launches = of_category(events, "launch");
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[3]["name"], "step of 1");
  EXPECT_EQ(steps[3]["args"], Json({{"sequences", "1"}, {"logits", "1"}}));
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.size() % steps.size(), 0u) << "each runs the forward and the head once";
  for (const Json& launch : launches) {
    EXPECT_FALSE(launch["args"]["provider"].get<std::string>().empty());
    EXPECT_FALSE(launch["args"]["piece"].get<std::string>().empty());
  }
}

TEST_F(TraceOfRun, HasTheFunctionsThatAreGeneratedAndNoneWherePlansWereKept) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::map<std::string, std::string> cache{{"WEFT_CACHE_ROOT", folder_ / "cache"}};
  const std::vector<std::string> words{"--ir-op-priority.rms_norm=native", "--require-codegen"};
  const std::vector<Json> cold = events_of(words, cache), warm = events_of(words, cache);
  for (const char* category : {"generate", "pass", "compile"}) {
    EXPECT_GT(count(cold, category), 0u) << category;
    EXPECT_EQ(count(warm, category), 0u) << category;
  }
  EXPECT_GT(count(cold, "launch"), 0u);
  EXPECT_EQ(count(warm, "launch"), count(cold, "launch"));
}

TEST_F(TraceOfRun, ShowsReplaysOfADeviceAsOne) {
  const std::vector<Json> events = events_of({"--device", "fake-cuda", "--dtype", "f32"});
  EXPECT_EQ(count(events, "step"), 4u);
  EXPECT_GT(count(events, "replay"), 0u);
}

TEST_F(TraceOfRun, IsRefusedWhereItCannotBeWritten) {
  const ProgramRun ran = run_weft({"complete", model_, "-p", "a", "--trace", folder_ / "none/trace.json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("[--trace]"), std::string::npos) << ran.err;
}

TEST_F(TraceOfRun, IsNoLateWork) {
  const std::vector<Json> events = events_of({"--forbid-lazy", "--stats"});
  EXPECT_EQ(count(events, "step"), 4u);
}

}  // namespace weft::trace_test
