// `weft dump code`, and its message if no code can be generated.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "codegen/compile_rows.h"
#include "tests/program_run.h"

namespace weft::dump_code_test {

class DumpCode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
    path_ = std::filesystem::temp_directory_path() / ("weft_dump_code_" + std::to_string(getpid()) + ".graph");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string file(const std::string& body) {
    std::ofstream(path_) << "graph g(%x: f32[s0, 96]) stage=traced where s0 in [1, 64] {\n"
                         << body << "  return %y\n}\n";
    return path_;
  }

 private:
  std::filesystem::path path_;
};

constexpr const char* kGate = "  %y: f32[s0, 48] = silu_and_mul(%x)\n";

TEST_F(DumpCode, ShowsTheProgramAndTheCppOfEachFunction) {
  const ProgramRun run = run_weft({"dump", "code", file(kGate), "--ir-op-priority.silu_and_mul=native"});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* part :
       {"// 1 calls from g:", "// rows columns=48\n", "elem = silu_divisor", "extern \"C\" void rows_"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " is not in\n" << run.out;
  EXPECT_EQ(run.out.find("Native, but no function"), std::string::npos);
}

TEST_F(DumpCode, HasNothingToShowWhereKernelsAreChosen) {
  EXPECT_NE(run_weft({"dump", "code", file(kGate), "--json"}).out.find("\"name\": \"rows_"), std::string::npos);
  const ProgramRun run = run_weft({"dump", "code", file(kGate), "--json", "--cc.backend=eager"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("\"functions\": []"), std::string::npos) << run.out;
}

TEST_F(DumpCode, SaysWhichNativeNodesAreNoFunction) {
  const std::string path = file("  %y: f32[s0, 96] = log1p(%x)\n");
  const ProgramRun run = run_weft({"dump", "code", path});
  EXPECT_NE(run.out.find("y of p0 in g: [log1p] log1p is not an op of rows"), std::string::npos) << run.out;
  const ProgramRun required = run_weft({"dump", "plan", path, "--require-codegen"});
  EXPECT_EQ(breach_of_refusal(required, "[--require-codegen] no code can be generated for y of piece p0"), "");
  EXPECT_EQ(run_weft({"dump", "plan", path}).status, 0);
}

TEST_F(DumpCode, IsInThePlanThatRuns) {
  const std::vector<std::string> words = {"dump", "plan", file(kGate), "--ir-op-priority.silu_and_mul=native",
                                          "--require-codegen"};
  const ProgramRun run = run_weft(words);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("0 rows_"), std::string::npos) << run.out;
}

// It runs nothing, so it has no options that run ops one by one.
TEST_F(DumpCode, CompilesWhateverIsSaidOfRunning) {
  const std::string path = file(kGate);
  for (const char* eager : {"--enforce-eager", "-O0", "-cc.mode=none"})
    for (const char* what : {"code", "plan", "graph"}) {
      const ProgramRun run = run_weft({"dump", what, path, eager, "--skip-pass=raise", "--compile-to=plan"});
      EXPECT_EQ(run.status, 0) << run.err;
      EXPECT_EQ(run.err, "");
    }
}

}  // namespace weft::dump_code_test
