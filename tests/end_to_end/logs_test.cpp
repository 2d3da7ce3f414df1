// Each topic of WEFT_LOGS prints what docs/debugging.md says of it.

#include <functional>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "compiler/log.h"
#include "include/weft/compile.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::logs_test {

class Logs : public ::testing::Test {
 protected:
  // What the program prints on standard error with WEFT_LOGS.
  std::string said(const std::string& topics, std::vector<std::string> words) const {
    ::testing::internal::CaptureStderr();
    run_weft(words, "", {{"WEFT_LOGS", topics}, {"WEFT_CACHE_ROOT", folder_ / "cache"}});
    return ::testing::internal::GetCapturedStderr();
  }
  std::string of_model(const std::string& topics) const { return said(topics, {"logits", model_, "--ids", "[1,2]"}); }
  std::string of_model_with_nan(const std::string& topics) const {
    SampleCheckpoint sample(make_model_registry().find("llama", "test"));
    sample.multiply("lm_head.weight", std::numeric_limits<float>::quiet_NaN());
    return said(topics, {"logits", sample.write_folder(folder_, "nan", DType::f32), "--ids", "[1,2]"});
  }
  // Of a function with a graph break, and of one that is called with two numbers.
  std::string of_function(const std::string& topics) const {
    Options options;
    options.logs = topics;
    ::testing::internal::CaptureStderr();
    Compiler compiler(options);
    auto broken = compiler.compile([](Value x) { return item(sum(reshape(x, {1, 4}), 1)) > 0 ? x : neg(x); });
    auto scaled = compiler.compile([](Value x, int times) { return mul_scalar(x, times); });
    const Value x = compiler.value({4}, {1, 2, 3, 4});
    broken(x);
    scaled(x, 2);
    scaled(x, 3);
    return ::testing::internal::GetCapturedStderr();
  }

  const TemporaryFolder folder_;
  const std::string model_ = SampleCheckpoint(make_model_registry().find("llama", "test"), {{"mine", 1}})
                                 .write_folder(folder_, "m", DType::bf16);
};

TEST_F(Logs, EachTopicPrintsALine) {
  const std::map<std::string, std::function<std::string(const std::string&)>> others = {
      {"guards", [&](const std::string& topic) { return of_function(topic); }},
      {"recompiles", [&](const std::string& topic) { return of_function(topic); }},
      {"graph_breaks", [&](const std::string& topic) { return of_function(topic); }},
      {"nan", [&](const std::string& topic) { return of_model_with_nan(topic); }}};
  for (const std::string& topic : Log::topics())
    for (const std::string& asked : {topic, "+" + topic}) {
      const auto other = others.find(topic);
      const std::string text = other == others.end() ? of_model(asked) : other->second(asked);
      EXPECT_NE(text.find("[" + topic + "] "), std::string::npos) << asked << ":\n" << text;
    }
}

TEST_F(Logs, TheCacheIsUsedWhileItsTopicIsPrinted) {
  const std::string first = of_model("cache"), second = of_model("cache"), more = of_model("+cache");
  EXPECT_NE(first.find("[cache] forward: plans compiled"), std::string::npos) << first;
  EXPECT_NE(first.find("no entry to compare with"), std::string::npos) << first;
  EXPECT_NE(second.find("[cache] forward: plans found"), std::string::npos) << second;
  EXPECT_NE(more.find("[cache] forward: --batch-invariant is false"), std::string::npos) << more;
  const std::string other = said("cache", {"logits", model_, "--ids", "[1,2]", "--batch-invariant"});
  EXPECT_NE(other.find("differs in --batch-invariant: wanted true, found false"), std::string::npos) << other;
  const std::string with_passes = of_model("cache,passes");
  EXPECT_NE(with_passes.find("[cache] forward: plans compiled, not cached: --logs"), std::string::npos) << with_passes;
}

TEST_F(Logs, ScheduleAndOutputCodeNameTheSameFunctions) {
  const std::string text = of_model("+schedule,+output_code");
  const std::size_t at = text.find(" = rows_");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string name = text.substr(at + 3, text.find('\n', at) - at - 3);
  EXPECT_NE(text.find("[output_code] " + name + ": rows columns="), std::string::npos) << text;
  EXPECT_NE(text.find("[schedule] forward 1-"), std::string::npos) << text;
  EXPECT_NE(text.find("linear_0 = linear@cpu"), std::string::npos) << text;
}

}  // namespace weft::logs_test
