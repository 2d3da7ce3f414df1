#include "runtime/loaded_code.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/compile_rows.h"

namespace weft::loaded_code_test {

// y = x + x for rows of 16.
RowProgram doubling() {
  RowProgram program;
  program.columns = 16;
  program.buffers = {{.row_stride = 16}, {.is_output = true, .row_stride = 16}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores.push_back({1, program.add({.op = RowOp::add, .a = x, .b = x}), RowDomain::element});
  program.finish();
  return program;
}

std::vector<std::byte> object_of(const RowProgram& program) {
  std::string problem;
  return compile_rows(program, CpuFeatures::baseline, problem);
}

class LoadedCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
};

TEST_F(LoadedCodeTest, RunsWhatTheObjectDefines) {
  const RowProgram program = doubling();
  const auto code = LoadedCode::load(object_of(program));
  float x[32], y[32] = {};
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i);
  void* buffers[] = {x, y};
  code->find<RowFunction>(program.name())(buffers, 0, 2, 2);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], static_cast<float>(2 * i));
  EXPECT_THROW(code->find<RowFunction>("rows_0"), InternalError);
}

// Cut off and changed objects are refused or load; nothing of them runs.
TEST_F(LoadedCodeTest, RefusesWhatIsNoWholeObject) {
  const std::vector<std::byte> object = object_of(doubling());
  ASSERT_GT(object.size(), 64u);
  int refused = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes = object;
    if (i % 2 == 0) {
      bytes.resize(object.size() * i / 200);
    } else {
      bytes[object.size() * i / 200] ^= std::byte{0xff};
    }
    try {
      LoadedCode::load(bytes);
    } catch (const InternalError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, 100);
}

}  // namespace weft::loaded_code_test
