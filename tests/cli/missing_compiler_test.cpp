// The program without libweft_llvm.so, or with one in its folder that it cannot use: kernels compute everything.

#include <cmath>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/files.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "codegen/llvm_interface.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::missing_compiler_test {

namespace fs = std::filesystem;

class MissingCompiler : public ::testing::Test {
 protected:
  // A copy of the program: its folder has only what the test puts there.
  MissingCompiler() {
    fs::create_directories(fs::path(library_).parent_path());
    fs::copy_file(WEFT_PROGRAM, program_);
  }
  ProgramRun run(const std::string& words) const {
    const std::string out = folder_ / "out", err = folder_ / "err";
    const std::string variables = "env -u WEFT_DISABLE_COMPILE_CACHE WEFT_CACHE_ROOT=" + folder_ / "cache" + " ";
    const int status = std::system((variables + program_ + " " + words + " >" + out + " 2>" + err).c_str());
    return {WEXITSTATUS(status), read_file(out, 1 << 20), read_file(err, 1 << 20)};
  }
  ProgramRun complete(const std::string& more = "") const { return run("complete " + model_ + " -p abc -n 4 " + more); }
  std::string text_of_kernels() const { return complete("--disable-compile-cache -cc.backend=eager").out; }
  // The provider of every node.
  nlohmann::json choices(const std::string& more = "") const {
    const ProgramRun explained = run("explain " + model_ + " --json --disable-compile-cache " + more);
    EXPECT_EQ(explained.status, 0) << explained.err;
    const nlohmann::json report = nlohmann::json::parse(explained.out);
    nlohmann::json providers;
    for (const auto& node : report["nodes"])
      providers[node["node"].get<std::string>()] = node["choices"][0]["provider"];
    EXPECT_GE(providers.size(), 10u);
    return providers;
  }
  // The program's message about a library that it cannot use: it is printed once at every start, and kernels compute
  // the text.
  void expect_warning(const std::string& problem) const {
    for (int start = 0; start < 2; ++start) {
      const ProgramRun completed = complete();
      EXPECT_EQ(completed.status, 0) << completed.err;
      EXPECT_EQ(completed.out, text_of_kernels());
      const std::size_t warning = completed.err.find("no code can be generated");
      ASSERT_NE(warning, std::string::npos) << completed.err;
      EXPECT_NE(completed.err.find(problem, warning), std::string::npos) << completed.err;
      EXPECT_EQ(completed.err.find("no code can be generated", warning + 1), std::string::npos) << completed.err;
    }
    EXPECT_EQ(choices(), choices("-cc.backend=eager"));
    EXPECT_EQ(breach_of_refusal(complete("--require-codegen"), problem), "");
    EXPECT_NE(run("info").out.find(problem), std::string::npos);
  }

  TemporaryFolder folder_;
  const std::string program_ = folder_ / "bin/weft", library_ = folder_ / "bin/libweft_llvm.so";
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

// Also with stored Plans.
TEST_F(MissingCompiler, LeavesEverythingToKernels) { expect_warning("libweft_llvm.so is not installed"); }

// With an artifact alone: the checkpoint is inside, and there is neither a compiler nor a compile cache.
TEST_F(MissingCompiler, IsNotMissedByAnArtifact) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::string artifact = folder_ / "m.weft";
  const std::string compile = " compile " + model_ + " -o " + artifact + " --with-weights --require-codegen";
  ASSERT_EQ(std::system((WEFT_PROGRAM + compile + " >" + folder_ / "out").c_str()), 0);
  const ProgramRun whole = run_weft({"complete", model_, "-p", "abc", "-n", "4"});
  fs::remove(model_);
  fs::remove_all(folder_ / "cache");
  const ProgramRun completed = run("complete " + artifact + " -p abc -n 4 --require-codegen --disable-compile-cache");
  EXPECT_EQ(completed.status, 0);
  EXPECT_EQ(completed.err, "");
  EXPECT_EQ(completed.out, whole.out);
  const ProgramRun explained = run("explain " + artifact + " --json --disable-compile-cache");
  EXPECT_NE(explained.out.find("\"native\""), std::string::npos) << "of generated code";
  EXPECT_FALSE(fs::exists(library_));
}

TEST_F(MissingCompiler, SaysWhatIsWrongWithTheLibrary) {
  std::ofstream(library_) << "no library";
  expect_warning("file too short");
}

// Its pages after the end would end the process.
TEST_F(MissingCompiler, SaysThatTheLibraryIsCut) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  fs::copy_file(row_compiler_path(), library_);
  fs::resize_file(library_, 8192);
  expect_warning(library_ + ": it ends before a part that its header names");
}

TEST_F(MissingCompiler, SaysThatTheLibraryIsOfAnotherBuild) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  std::string bytes = read_file(row_compiler_path(), std::size_t{1} << 30);
  const std::size_t at = bytes.find(kLlvmInterface);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = bytes[at] == '0' ? '1' : '0';
  std::ofstream(library_, std::ios::binary) << bytes;
  expect_warning("is of another build");
  // Once the right one is there it is used: nothing was kept in its name.
  fs::copy_file(row_compiler_path(), library_, fs::copy_options::overwrite_existing);
  const ProgramRun explained = run("explain " + model_ + " --require-codegen --json");
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_NE(explained.out.find("\"hit\": false"), std::string::npos);
}

// The library in the loader's path may be of another build. A warm start reads only its first pages; the rest need not
// exist.
TEST_F(MissingCompiler, KnowsTheLibraryOfThisBuildByItsFirstPages) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::string elsewhere = folder_ / "elsewhere", library = elsewhere + "/libweft_llvm.so";
  fs::create_directory(elsewhere);
  const auto start = [&] {
    return std::system(("LD_LIBRARY_PATH=" + elsewhere + " WEFT_CACHE_ROOT=" + folder_ / "cache" +
                        " env -u WEFT_DISABLE_COMPILE_CACHE " + program_ + " complete " + model_ +
                        " -p abc -n 4 --require-codegen >/dev/null 2>" + folder_ / "err")
                           .c_str());
  };
  std::string bytes = read_file(row_compiler_path(), std::size_t{1} << 30);
  std::ofstream(library, std::ios::binary) << bytes;
  ASSERT_EQ(WEXITSTATUS(start()), 0) << read_file(folder_ / "err", 1 << 20);
  std::ofstream(library, std::ios::binary) << bytes.substr(0, 8192);
  EXPECT_EQ(WEXITSTATUS(start()), 0) << read_file(folder_ / "err", 1 << 20);
  const std::size_t at = bytes.find(kLlvmInterface);
  ASSERT_LT(at, 8192u);
  bytes[at] = bytes[at] == '0' ? '1' : '0';
  std::ofstream(library, std::ios::binary) << bytes;
  EXPECT_EQ(WEXITSTATUS(start()), 2);
  EXPECT_NE(read_file(folder_ / "err", 1 << 20).find("is not installed"), std::string::npos);
}

TEST_F(MissingCompiler, SaysThatTheLibraryIsSomethingElse) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  Dl_info mathematics;
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(static_cast<double (*)(double)>(&::cbrt)), &mathematics), 0);
  fs::copy_file(mathematics.dli_fname, library_);
  expect_warning("has no weft_llvm_interface");
}

}  // namespace weft::missing_compiler_test
