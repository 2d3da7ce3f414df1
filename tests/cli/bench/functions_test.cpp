// weft bench functions as a user sees it. No test depends on times.

#include "apps/cli/bench/functions.h"

#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::bench_functions_test {

using Json = nlohmann::json;

ProgramRun bench(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "functions"});
  return run_weft(more);
}

TEST(BenchFunctions, CountsTheBytesOfAnOpsFunction) {
  if (!can_compile_rows()) GTEST_SKIP() << "nothing compiles functions here";
  const ProgramRun run =
      bench({"--op", "silu_and_mul", "--op", "rms_norm", "--columns", "128", "-r", "1", "--bytes", "100000", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::map<std::string, std::int64_t> row_bytes;
  const Json report = Json::parse(run.out);
  for (const Json& row : report["rows"]) {
    row_bytes[row["source"]] = row["row_bytes"];
    EXPECT_GE(row["rows"].get<std::int64_t>() * row["row_bytes"].get<std::int64_t>(), 100000);
    for (const char* key : {"best_us", "gb_s", "copy_us", "percent_of_copy", "cached_row_ns", "cached_row_cycles"})
      EXPECT_GT(row[key], 0) << key;
    EXPECT_EQ(row["samples_us"].size(), 1u);
    EXPECT_EQ(row["copy_samples_us"].size(), 1u);
  }
  EXPECT_GT(report["machine"]["clock_ghz"], 0);
  const std::map<std::string, std::int64_t> wanted = {{"silu_and_mul f32", 3 * 128 * 4},
                                                      {"silu_and_mul bf16", 3 * 128 * 2},
                                                      {"rms_norm f32", 2 * 128 * 4},
                                                      {"rms_norm bf16", 2 * 128 * 2}};
  EXPECT_EQ(row_bytes, wanted);
}

TEST(BenchFunctions, MeasuresEveryFunctionOfAModelOnceAndKeepsItsCode) {
  if (!can_compile_rows()) GTEST_SKIP() << "nothing compiles functions here";
  TemporaryFolder folder;
  const std::string model =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder, "m.gguf", DType::q4_1);
  const ProgramRun run = bench({model, "--objects", folder / "objects", "-r", "1", "--bytes", "100000", "-o", "jsonl"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::set<std::string> functions;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    const std::string function = row["function"];
    EXPECT_TRUE(functions.insert(function).second) << function;
    EXPECT_EQ(read_file(folder / "objects/" + function + ".o", 1 << 20).substr(1, 3), "ELF");
  }
  EXPECT_GE(functions.size(), 3u);
}

TEST(BenchFunctions, PrintsATable) {
  if (!can_compile_rows()) GTEST_SKIP() << "nothing compiles functions here";
  const ProgramRun run = bench({"--op", "add", "-r", "1", "--bytes", "1000"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* text : {"% of copy", "| add f32", "| add bf16", "rows_"})
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in " << run.out;
}

TEST(BenchFunctions, SaysWhyAnOpHasNone) {
  if (!can_compile_rows()) GTEST_SKIP() << "nothing compiles functions here";
  const ProgramRun run = bench({"--op", "linear", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_TRUE(report["rows"].empty());
  ASSERT_FALSE(report["refused"].empty());
  EXPECT_EQ(report["refused"][0]["source"], "linear f32");
}

TEST(BenchFunctions, RefusesWhatIsNotThere) {
  EXPECT_EQ(breach_of_refusal(bench({"--op", "rms_nrm"}), "rms_norm"), "");
  EXPECT_EQ(breach_of_refusal(bench({"-r", "0"}), "[-r]"), "");
  EXPECT_EQ(breach_of_refusal(bench({"--columns", "0"}), "[--columns]"), "");
  EXPECT_EQ(breach_of_refusal(bench({"--bytes", "1T"}), "[--bytes]"), "");
  EXPECT_EQ(breach_of_refusal(bench({"no-such-model"}), "no-such-model"), "");
}

}  // namespace weft::bench_functions_test
