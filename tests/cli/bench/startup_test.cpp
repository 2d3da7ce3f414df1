// weft bench startup, run as the program it starts again.

#include <cstdio>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/files.h"
#include "base/stopwatch.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::bench_startup_test {

class BenchStartup : public ::testing::Test {
 protected:
  // The program itself, with a compile cache of this test; `words` have no characters that a shell would interpret.
  ProgramRun start(const std::string& words, const std::string& variable = "") {
    const std::string out = folder_ / "out", err = folder_ / "err";
    const std::string variables =
        "env -u WEFT_DISABLE_COMPILE_CACHE WEFT_CACHE_ROOT=" + folder_ / "cache" + " " + variable + " ";
    const int status = std::system((variables + WEFT_PROGRAM " " + words + " >" + out + " 2>" + err).c_str());
    return {WEXITSTATUS(status), read_file(out, 1 << 20), read_file(err, 1 << 20)};
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

double sum(const nlohmann::json& phases) {
  double total = 0;
  for (const auto& [name, milliseconds] : phases.items()) total += name == "total" ? 0 : milliseconds.get<double>();
  return total;
}

TEST_F(BenchStartup, HasTheKeysOfVllm) {
  const std::string file = folder_ / "report.json";
  const ProgramRun run = start("bench startup " + model_ +
                               " --num-iters-cold 2 --num-iters-warm 3 --num-iters-warmup 1 --json --output-json " +
                               file + " -t 1 -cc.compile_ranges_split_points=4");
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report, nlohmann::json::parse(read_file(file, 1 << 20)));
  for (const std::string kind : {"cold", "warm"}) {
    const std::size_t count = kind == "cold" ? 2 : 3;
    for (const std::string what : {"startup", "compilation"}) {
      const auto& times = report[kind + "_" + what + "_times"];
      ASSERT_EQ(times.size(), count);
      double mean = 0;
      for (const auto& seconds : times) mean += seconds.get<double>() / static_cast<double>(count);
      EXPECT_NEAR(report["avg_" + kind + "_" + what + "_time"].get<double>(), mean, 1e-9);
      const auto& percentiles = report[kind + "_" + what + "_percentiles"];
      EXPECT_EQ(percentiles.size(), 6u);
      EXPECT_LE(percentiles["10"].get<double>(), percentiles["99"].get<double>());
      EXPECT_GT(times[0].get<double>(), 0);
    }
    const auto& memory = report[kind + "_memory_bytes"];
    EXPECT_GT(memory["resident"], memory["of_files"]);
    EXPECT_GE(memory["peak"], memory["resident"]);
    // The phases, including the time that the process cannot see, are the whole time.
    const double startup = report["avg_" + kind + "_startup_time"].get<double>() * 1000;
    EXPECT_NEAR(sum(report[kind + "_phases_ms"]), startup, 1e-6);
    EXPECT_TRUE(report[kind + "_phases_ms"].contains("process"));
  }
}

TEST_F(BenchStartup, CountsTheTuningOfExactSizesAsAPhase) {
  const ProgramRun run = start("bench startup " + model_ +
                               " --num-iters-cold 1 --num-iters-warm 1 --num-iters-warmup 0 --json --forbid-lazy"
                               " -cc.compile_sizes=1,4 --tuning-budget 1");
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json report = nlohmann::json::parse(run.out);
  for (const std::string kind : {"cold", "warm"}) {
    EXPECT_TRUE(report[kind + "_phases_ms"].contains("tune")) << run.out;
    EXPECT_NEAR(sum(report[kind + "_phases_ms"]), report["avg_" + kind + "_startup_time"].get<double>() * 1000, 1e-6);
  }
}

TEST_F(BenchStartup, PrintsATableOfPhases) {
  const ProgramRun run = start("bench startup " + model_ + " --num-iters-cold 1 --num-iters-warm 0");
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* part : {"cold startup", "tokenizer", "compile", "weights", "outside"})
    EXPECT_NE(run.out.find(part), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("warm"), std::string::npos) << run.out;
}

// Each phase ends where the next one begins, and the last one at the end of the total, so one start is enough, however
// long it waited. The names, and the time of the whole process, show that no phase is missing and that the phases begin
// with the process.
TEST_F(BenchStartup, PhasesSumToTheTimeFromTheStartOfTheProcess) {
  const std::set<std::string> of_both{"process", "options", "context", "checkpoint", "trace", "compile",
                                      "weights", "capture", "pages",   "report",     "total"};
  std::set<std::string> of_engine = of_both;
  of_engine.insert("tokenizer");
  int starts = 0;
  for (const auto& [words, wanted] :
       {std::pair("bench startup " + model_ + " --once", of_engine), {"explain " + model_ + " --json", of_both}}) {
    const Stopwatch watch;
    const ProgramRun run = start(words);
    const double outside = watch.total();
    ASSERT_EQ(run.status, 0) << run.err;
    const nlohmann::json report = nlohmann::json::parse(run.out), timing = report["timing_ms"];
    std::set<std::string> phases;
    for (const auto& [name, milliseconds] : timing.items()) {
      phases.insert(name);
      EXPECT_GT(milliseconds.get<double>(), 0) << name;
    }
    EXPECT_EQ(phases, wanted) << words;
    const double total = timing["total"].get<double>();
    EXPECT_NEAR(sum(timing), total, total * 1e-9) << words;
    EXPECT_LE(total, outside) << words;
    // Plans that were found are in one piece.
    EXPECT_EQ(report["compile_ms"].empty(), starts++ > 0);
    if (report["compile_ms"].empty()) continue;
    EXPECT_NEAR(sum(report["compile_ms"]), timing["compile"].get<double>(), 1e-3);
  }
}

// The path as the loader knows it.
TEST_F(BenchStartup, AWarmStartDoesNotOpenTheCompiler) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::string words = "bench startup " + model_ + " --once --require-codegen --forbid-lazy";
  for (const bool is_warm : {false, true}) {
    const ProgramRun run = start(words, "LD_DEBUG=files");
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.err.find("libc.so"), std::string::npos);
    EXPECT_EQ(run.err.find("libweft_llvm.so") == std::string::npos, is_warm);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// At ready the memory of the compilation is released: LLVM's freed memory, and the pages of its library.
TEST_F(BenchStartup, GivesBackWhatCompilingTook) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const auto memory = [&](const char* what) {
    const ProgramRun run = start("bench startup " + model_ + " --once --require-codegen --forbid-lazy");
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["memory_bytes"][what];
  };
  constexpr std::int64_t kMegabyte = 1'000'000;
  const ProgramRun compiled = start("bench startup " + model_ + " --once --require-codegen --forbid-lazy");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const nlohmann::json cold = nlohmann::json::parse(compiled.out)["memory_bytes"];
  EXPECT_GT(cold["peak"].get<std::int64_t>(), memory("peak").get<std::int64_t>() + 32 * kMegabyte)
      << "there is something to give back";
  EXPECT_LT(cold["resident"].get<std::int64_t>(), memory("resident").get<std::int64_t>() + 16 * kMegabyte);
  EXPECT_LT(cold["of_files"].get<std::int64_t>(), memory("of_files").get<std::int64_t>() + 8 * kMegabyte);
}
#endif

TEST_F(BenchStartup, RefusesWhatItCannotMeasure) {
  const auto refused = [&](const std::string& words, const std::string& part) {
    EXPECT_EQ(breach_of_refusal(start("bench startup " + words), part), "");
  };
  refused(model_ + " --num-iters-cold 0 --num-iters-warm 0", "nothing to measure");
  refused(model_ + " --num-iters-warm -1", "[--num-iters-warm]");
  refused("/nonexistent.gguf", "/nonexistent.gguf");
  refused(model_ + " --max-model-len 1000000", "a start was refused");
}

}  // namespace weft::bench_startup_test
