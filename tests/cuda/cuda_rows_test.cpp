// Row programs as CUDA C++, compiled by NVRTC and run in the PTX interpreter: the bits of the machine code of this
// machine's processor.

#include <cstdio>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "codegen/cuda_row_text.h"
#include "codegen/row_tuning.h"
#include "codegen/simplify_rows.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/loaded_code.h"
#include "tests/codegen/random_rows.h"
#include "tests/cuda/ptx/interpreter.h"
#include "tests/thrown_message.h"

namespace weft::cuda_rows_test {

constexpr std::int64_t kRows = 3;

class CudaRows : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
    std::string problem;
    compiler_ = cuda::Nvrtc::open(cuda::nvrtc_places(process_environment()), problem);
    if (compiler_ != nullptr) return;
    std::printf("count: row programs as CUDA C++ are not run: %s\n", problem.c_str());
    GTEST_SKIP() << problem;
  }

  // PTX of all programs.
  std::string compiled(const std::vector<RowProgram>& programs, int architecture) const {
    cuda::NvrtcSource source{.name = "rows.cu", .text = cuda_row_prologue(), .headers = cuda_row_headers()};
    for (const RowProgram& program : programs) source.text += cuda_row_text(program);
    return compiler_->compile(source, architecture, cuda::NvrtcCode::ptx, {kCudaRowOption});
  }

  std::unique_ptr<cuda::Nvrtc> compiler_;
};

std::vector<RowProgram> random_programs(std::size_t count, bool tame, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<RowProgram> programs;
  std::set<std::string> texts;
  while (programs.size() < count) {
    RowProgram program = random_rows(random, tame);
    if (texts.insert(program.text()).second) programs.push_back(std::move(program));
  }
  return programs;
}

// Ops whose result is the sum itself, because codes of a sum may hide its last bits.
RowProgram sum_of_a_row() {
  RowProgram program;
  program.columns = 130;
  program.buffers = {{.row_stride = 130}, {.is_output = true, .row_stride = 1}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores.push_back({1, program.add({.op = RowOp::row_sum, .a = x}), RowDomain::row});
  program.finish();
  return program;
}

// Rounded where processors and devices make NaN with different bits.
RowProgram rounded_nan() {
  RowProgram program;
  program.columns = 32;
  program.buffers = {{.dtype = DType::bf16, .row_stride = 32},
                     {.dtype = DType::f32, .is_output = true, .row_stride = 32}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int root = program.add({.op = RowOp::sqrt, .a = x});
  const int rounded = program.add({.op = RowOp::convert, .a = root, .dtype = DType::bf16});
  program.stores = {{.buffer = 1, .value = rounded, .domain = RowDomain::element}};
  simplify_rows(program);
  program.finish();
  return program;
}

void run_by_processor(const RowProgram& program, RowBuffers& buffers) {
  std::string problem;
  const std::vector<std::byte> object = compile_rows(program, describe_cpu("baseline", 1).features, problem);
  ASSERT_EQ(problem, "");
  buffers.run(LoadedCode::load(object)->find<RowFunction>(program.name()));
}

// `blocks` rows, or parts of rows, from `first` on.
void run_by_interpreter(const RowProgram& program, ptx::Interpreter& interpreter, RowBuffers& buffers,
                        std::int64_t first = 0, std::uint32_t blocks = kRows) {
  std::vector<const void*> arguments(buffers.data(), buffers.data() + program.buffers.size());
  arguments.push_back(reinterpret_cast<const void*>(first));
  cuda::MemoryMap memory;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const std::span<std::byte> all = buffers.memory(i);
    const std::string name = fmt::format("buffer {}", i);
    program.buffers[i].is_output ? memory.allow_writing(name, all.data(), all.size())
                                 : memory.allow_reading(name, all.data(), all.size());
  }
  interpreter.run(program.name(), {.blocks = blocks, .threads = kCudaRowThreads}, arguments.data(),
                  arguments.size() * sizeof(void*), memory);
}

TEST_F(CudaRows, HaveTheBitsOfMachineCode) {
  std::vector<RowProgram> programs = random_programs(24, false, 17);
  programs.push_back(sum_of_a_row());
  programs.push_back(rounded_nan());
  ptx::Interpreter interpreter(compiled(programs, 90), "rows.ptx");
  for (const RowProgram& program : programs) {
    RowBuffers wanted(program, kRows, 3), came(program, kRows, 3);
    run_by_processor(program, wanted);
    run_by_interpreter(program, interpreter, came);
    EXPECT_EQ(difference(program, wanted, came), "") << cuda_row_text(program);
    EXPECT_TRUE(came.is_intact()) << program.text();
    if (HasFailure()) break;
  }
}

TEST_F(CudaRows, BeginAtAnyRow) {
  std::vector<RowProgram> programs = random_programs(6, false, 29);
  programs.push_back(sum_of_a_row());
  ptx::Interpreter interpreter(compiled(programs, 90), "rows.ptx");
  std::size_t told_apart = 0;  // rows may be equal, e.g. if all are clamped
  for (const RowProgram& program : programs) {
    RowBuffers wanted(program, kRows, 5), came(program, kRows, 5), last(program, kRows, 5);
    run_by_processor(program, wanted);
    run_by_interpreter(program, interpreter, last, kRows - 1, 1);
    told_apart += difference(program, wanted, last).empty() ? 0 : 1;
    run_by_interpreter(program, interpreter, came, 1, kRows - 1);
    run_by_interpreter(program, interpreter, came, 0, 1);
    EXPECT_EQ(difference(program, wanted, came), "") << cuda_row_text(program);
    EXPECT_TRUE(came.is_intact()) << program.text();
    if (HasFailure()) break;
  }
  EXPECT_GT(told_apart, programs.size() / 2) << "one row is not all of them";
}

TEST_F(CudaRows, AreComputedInParts) {
  std::mt19937 random(31);
  std::vector<RowProgram> whole, in_parts;
  while (in_parts.size() < 8) {
    const RowProgram program = random_rows(random, false);
    const int parts = in_parts.size() % 2 == 0 ? 2 : 3;
    const auto tuned = tuned_program(program, {.parts = parts});
    if (!tuned) continue;
    whole.push_back(program);
    in_parts.push_back(*tuned);
  }
  ptx::Interpreter interpreter(compiled(in_parts, 90), "parts.ptx");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    RowBuffers wanted(whole[i], kRows, 7), came(whole[i], kRows, 7);
    run_by_processor(whole[i], wanted);
    const auto blocks = static_cast<std::uint32_t>(kRows * in_parts[i].tuning.parts);
    run_by_interpreter(in_parts[i], interpreter, came, 1, blocks - 1);
    run_by_interpreter(in_parts[i], interpreter, came, 0, 1);
    EXPECT_EQ(difference(whole[i], wanted, came), "") << cuda_row_text(in_parts[i]);
    EXPECT_TRUE(came.is_intact()) << in_parts[i].text();
    if (HasFailure()) break;
  }
}

// Every element with the sum of its row, and that with the largest of those: two reductions, of which each thread needs
// both.
RowProgram reduced_twice() {
  RowProgram program;
  program.columns = 96;
  program.buffers = {{.dtype = DType::f32, .row_stride = 96},
                     {.dtype = DType::f32, .is_output = true, .row_stride = 96},
                     {.dtype = DType::f32, .is_output = true, .row_stride = 96}};
  const auto element = RowDomain::element, row = RowDomain::row;
  const int loaded = program.add({.op = RowOp::load, .domain = element, .buffer = 0});
  const int sum = program.add({.op = RowOp::row_sum, .domain = row, .a = loaded});
  const int summed = program.add({.op = RowOp::add, .domain = element, .a = loaded, .b = sum});
  const int without_sign = program.add({.op = RowOp::abs, .domain = element, .a = summed});
  const int largest = program.add({.op = RowOp::row_max, .domain = row, .a = without_sign});
  const int result = program.add({.op = RowOp::add, .domain = element, .a = summed, .b = largest});
  program.stores = {{.buffer = 1, .value = summed, .domain = element},
                    {.buffer = 2, .value = result, .domain = element}};
  program.finish();
  return program;
}

TEST_F(CudaRows, ReduceARowTwice) {
  const RowProgram program = reduced_twice();
  EXPECT_EQ(program.levels, 3);
  ptx::Interpreter interpreter(compiled({program}, 90), "twice.ptx");
  RowBuffers wanted(program, kRows, 3), came(program, kRows, 3);
  run_by_processor(program, wanted);
  run_by_interpreter(program, interpreter, came);
  EXPECT_EQ(difference(program, wanted, came), "") << cuda_row_text(program);
}

// Rows of buffer 1 that buffer 0 numbers, doubled.
RowProgram taken_row() {
  RowProgram program;
  program.columns = 32;
  program.buffers = {{.dtype = DType::i64, .row_stride = 1},
                     {.dtype = DType::f32, .row_stride = 32, .numbers = 0, .taken_from = 4},
                     {.dtype = DType::f32, .is_output = true, .row_stride = 32}};
  const int loaded = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
  const int twice = program.add({.op = RowOp::add, .a = loaded, .b = loaded});
  program.stores = {{.buffer = 2, .value = twice, .domain = RowDomain::element}};
  program.finish();
  return program;
}

TEST_F(CudaRows, StopWhereATableHasNoSuchRow) {
  const RowProgram program = taken_row();
  ptx::Interpreter interpreter(compiled({program}, 90), "taken.ptx");
  for (const std::int64_t number : {0, 3, 4, -1}) {
    RowBuffers buffers(program, kRows, 3);
    for (int row = 0; row < kRows; ++row) reinterpret_cast<std::int64_t*>(buffers.memory(0).data())[row] = number;
    const std::string message = message_of<DeviceError>([&] { run_by_interpreter(program, interpreter, buffers); });
    if (number >= 0 && number < 4) {
      EXPECT_EQ(message, "");
    } else {
      EXPECT_NE(message.find("stops the launch"), std::string::npos) << number << ": " << message;
    }
  }
}

TEST(CudaRowText, RefusesMaximaOfMoreGroupsThanFitIntoSharedMemory) {
  RowProgram program;
  program.columns = 32 * 16384;
  program.group = 32;
  program.buffers = {{.dtype = DType::f32, .row_stride = program.columns},
                     {.dtype = DType::f32, .is_output = true, .row_stride = 16384}};
  const int loaded = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int without_sign = program.add({.op = RowOp::abs, .domain = RowDomain::element, .a = loaded});
  const int largest = program.add({.op = RowOp::group_max, .domain = RowDomain::group, .a = without_sign});
  program.stores = {{.buffer = 1, .value = largest, .domain = RowDomain::group}};
  program.finish();
  EXPECT_NE(message_of([&] { cuda_row_text(program); }).find("take 65536 bytes of shared memory; every device has"),
            std::string::npos);
}

}  // namespace weft::cuda_rows_test
