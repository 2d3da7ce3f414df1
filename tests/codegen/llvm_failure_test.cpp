// What is left where LLVM ends the process or crashes, in whichever thread.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/shared_library.h"
#include "codegen/compile_rows.h"
#include "codegen/llvm_library.h"
#include "tests/base/temporary_folder.h"

namespace weft::llvm_failure_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerTakesSignals = true;
#else
constexpr bool kSanitizerTakesSignals = false;
#endif

RowProgram doubled() {
  RowProgram program;
  program.columns = 8;
  program.buffers = {{.dtype = DType::f32, .row_stride = 8}, {.dtype = DType::f32, .is_output = true, .row_stride = 8}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int sum = program.add({.op = RowOp::add, .domain = RowDomain::element, .a = x, .b = x});
  program.stores.push_back({.buffer = 1, .value = sum});
  program.finish();
  return program;
}

// In the child of a death test, which is a process of its own.
void break_compiler(LlvmBreak how, const std::string& folder, bool in_a_worker) {
  std::string problem;
  const auto library = SharedLibrary::open(row_compiler_path(), problem);
  LlvmBreaker* breaker = library ? library->find<LlvmBreaker>(kLlvmBreakSymbol) : nullptr;
  if (breaker == nullptr) std::_Exit(1);
  const RowProgram program = doubled();
  const auto call = [&] { breaker({program, CpuFeatures::baseline, folder}, how); };
  if (in_a_worker) {
    std::thread(call).join();
  } else {
    call();
  }
}

// A folder of the test, which its child, who runs the test from its start, finds in the environment.
class ParentFolder {
 public:
  ParentFolder() {
    if (const char* given = std::getenv(kVariable)) {
      path_ = given;
    } else {
      path_ = own_.emplace().path();
      ::setenv(kVariable, path_.c_str(), 1);
    }
  }
  ~ParentFolder() {
    if (own_) ::unsetenv(kVariable);
  }
  ParentFolder(const ParentFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  static constexpr const char* kVariable = "WEFT_TEST_FOLDER";
  std::optional<TemporaryFolder> own_;
  std::string path_;
};

class LlvmFailure : public testing::TestWithParam<LlvmBreak> {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
    if (kSanitizerTakesSignals && GetParam() == LlvmBreak::stack_overflow)
      GTEST_SKIP() << "a sanitizer looks at the stack itself";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};
using LlvmFailureDeathTest = LlvmFailure;

TEST_P(LlvmFailureDeathTest, LeavesTheProgramAndStatus3) {
  for (const bool in_a_worker : {false, true}) {
    const ParentFolder folder;
    EXPECT_EXIT(break_compiler(GetParam(), folder.path(), in_a_worker), testing::ExitedWithCode(3),
                "LLVM cannot go on with rows_.*: .*; its row program is in " + folder.path() + "/rows_.*");
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      ++files;
      EXPECT_EQ(read_file(entry.path(), 1 << 20), doubled().text());
    }
    EXPECT_EQ(files, 1);
  }
}

TEST_P(LlvmFailureDeathTest, SaysTheProgramWhereNoFileCanBe) {
  EXPECT_EXIT(break_compiler(GetParam(), "/nonexistent", false), testing::ExitedWithCode(3),
              "could not be written to /nonexistent/rows_.*:\nrows columns=8");
}

std::string name_of(const testing::TestParamInfo<LlvmBreak>& instance) {
  constexpr const char* kNames[] = {"fatal_error", "bad_address", "stack_overflow", "abort"};
  return kNames[static_cast<int>(instance.param)];
}

INSTANTIATE_TEST_SUITE_P(Every, LlvmFailureDeathTest,
                         testing::Values(LlvmBreak::fatal_error, LlvmBreak::bad_address, LlvmBreak::stack_overflow,
                                         LlvmBreak::abort),
                         name_of);

// What happens outside LLVM is not LLVM's, although it was there before.
TEST(AfterLlvmDeathTest, AbortIsAbort) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto compile_and_abort = [] {
    std::string problem;
    if (compile_rows(doubled(), CpuFeatures::baseline, problem).empty()) std::_Exit(1);
    std::abort();
  };
  EXPECT_EXIT(compile_and_abort(), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace weft::llvm_failure_test
