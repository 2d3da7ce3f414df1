// The remaining state after LLVM ends the process or crashes, in any thread.

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "base/files.h"
#include "base/shared_library.h"
#include "codegen/compile_rows.h"
#include "codegen/find_regions.h"
#include "codegen/llvm_library.h"
#include "compiler/context.h"
#include "compiler/pieces.h"
#include "ir/parse.h"
#include "tests/base/temporary_folder.h"
#include "tests/test_context.h"

namespace weft::llvm_failure_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerTakesSignals = true;
#else
constexpr bool kSanitizerTakesSignals = false;
#endif

// x + x
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

// In the child process of a death test.
void break_compiler(LlvmBreak how, const std::string& folder, bool in_a_worker) {
  std::string problem;
  const auto library = SharedLibrary::open(row_compiler_path(), problem);
  LlvmBreaker* breaker = library ? library->find<LlvmBreaker>(kLlvmBreakSymbol) : nullptr;
  if (breaker == nullptr) std::_Exit(1);
  const RowProgram program = doubled();
  const auto call = [&] { breaker({program, CpuFeatures::baseline, folder, "graph g() {}\n"}, how); };
  if (in_a_worker) {
    std::thread(call).join();
  } else {
    call();
  }
}

// A folder of the test. Its child process, which runs the test from the start, finds it in the environment.
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

TEST_P(LlvmFailureDeathTest, LeavesTheProgramItsGraphAndStatus3) {
  for (const bool in_a_worker : {false, true}) {
    const ParentFolder folder;
    EXPECT_EXIT(break_compiler(GetParam(), folder.path(), in_a_worker), testing::ExitedWithCode(3),
                "LLVM cannot go on with rows_.*: .*; its row program is in " + folder.path() +
                    "/rows_.*\\.rows; the graph it was made from is in " + folder.path() + "/rows_.*\\.graph");
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      ++files;
      const bool is_graph = entry.path().extension() == ".graph";
      EXPECT_EQ(read_file(entry.path(), 1 << 20), is_graph ? "graph g() {}\n" : doubled().text());
    }
    EXPECT_EQ(files, 2);
  }
}

TEST_P(LlvmFailureDeathTest, SaysBothWhereNoFileCanBe) {
  EXPECT_EXIT(break_compiler(GetParam(), "/nonexistent", false), testing::ExitedWithCode(3),
              "could not be written to /nonexistent/rows_[^\n]*\\.rows:\nrows columns=8(.|\n)*"
              "could not be written to /nonexistent/rows_[^\n]*\\.graph:\ngraph g");
}

std::string name_of(const testing::TestParamInfo<LlvmBreak>& instance) {
  constexpr const char* kNames[] = {"fatal_error", "bad_address", "stack_overflow", "abort"};
  return kNames[static_cast<int>(instance.param)];
}

INSTANTIATE_TEST_SUITE_P(Every, LlvmFailureDeathTest,
                         testing::Values(LlvmBreak::fatal_error, LlvmBreak::bad_address, LlvmBreak::stack_overflow,
                                         LlvmBreak::abort),
                         name_of);

// A split graph of two pieces. The values of p1 wait for one another in a chain of sums.
std::string two_pieces(int sums) {
  std::string text =
      "piece p0(%x: f32[s0, 8]) stage=lowered where s0 in [1, 8] {\n  %y = neg@native(%x)\n  return %y\n}\n\n"
      "piece p1(%x: f32[s0, 8]) stage=lowered where s0 in [1, 8] {\n  %v0 = add@native(%x, %x)\n";
  for (int i = 1; i < sums; ++i) text += fmt::format("  %v{} = add@native(%v{}, %x)\n", i, i - 1);
  return text + fmt::format("  return %v{}\n}}\n\n", sums - 1) +
         "graph g(%x: f32[s0, 8]) stage=split where s0 in [1, 8] {\n"
         "  %y: f32[s0, 8] = call p0(%x)\n  %z: f32[s0, 8] = call p1(%y)\n  return %z\n}\n";
}

// In a thread whose stack is large enough for all but the longest function inside LLVM (88 KiB are enough for it, 56
// for the others).
void generate_on_a_small_stack(const std::string& folder, int sums) {
  constexpr std::size_t kStackBytes = std::size_t{72} << 10;
  const auto context = test_context("host", 1);
  context->options.debug_dump_path = folder;
  if (row_compiler_text().empty()) std::_Exit(1);  // opened here, where there is enough stack
  const auto split = parse_graph(two_pieces(sums), context->ops);
  std::function<void()> work = [&] { generate_pieces(*split, *context, {1, 8}); };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kStackBytes) != 0) std::_Exit(2);
  pthread_t thread;
  const auto call = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, call, &work) != 0) std::_Exit(2);
  pthread_join(thread, nullptr);
  std::_Exit(0);
}

TEST(LlvmFailureOfAPieceDeathTest, LeavesItsGraph) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  if (kSanitizerTakesSignals) GTEST_SKIP() << "a sanitizer looks at the stack itself";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ParentFolder folder;
  EXPECT_EXIT(generate_on_a_small_stack(folder.path(), 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(generate_on_a_small_stack(folder.path(), kMostNodesOfRegion), testing::ExitedWithCode(3),
              "the graph it was made from is in");
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".graph") {
      ++graphs;
      EXPECT_EQ(read_file(entry.path(), 1 << 20).rfind("piece p1(%x: f32[s0, 8])", 0), 0u);
    }
  EXPECT_EQ(graphs, 1);
}

// A crash outside LLVM is not attributed to it, although LLVM ran before.
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
