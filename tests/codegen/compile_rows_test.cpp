// Row programs as machine code: on every instruction set of the host they have the bits of the C++ text, which are near
// those of double precision.

#include "codegen/compile_rows.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "codegen/interpret_row_program.h"
#include "codegen/llvm_interface.h"
#include "codegen/simplify_rows.h"
#include "parallel/thread_pool.h"
#include "runtime/loaded_code.h"
#include "tensor/bfloat16.h"
#include "tensor/device.h"
#include "tensor/reference_math.h"
#include "tests/codegen/random_rows.h"
#include "tests/codegen/row_text_library.h"
#include "tests/test_context.h"

namespace weft::compile_rows_test {

constexpr std::int64_t kRows = 3;

// All of them are different.
std::vector<RowProgram> random_programs(int count, bool tame, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<RowProgram> programs;
  std::set<std::string> texts;
  while (static_cast<int>(programs.size()) < count) {
    RowProgram program = random_rows(random, tame);
    if (texts.insert(program.text()).second) programs.push_back(std::move(program));
  }
  return programs;
}

struct CompiledRows {
  std::map<std::string, std::shared_ptr<const LoadedCode>> code;  // by name
  RowFunction* find(const RowProgram& program) const {
    return code.at(program.name())->find<RowFunction>(program.name());
  }
};

CompiledRows compiled(const std::vector<RowProgram>& programs, CpuFeatures features) {
  CompiledRows rows;
  for (const RowProgram& program : programs) {
    std::string problem;
    const std::vector<std::byte> object = compile_rows(program, features, problem);
    EXPECT_EQ(problem, "");
    rows.code[program.name()] = LoadedCode::load(object);
  }
  return rows;
}

std::vector<CpuFeatures> features_to_try() {
  std::vector<CpuFeatures> levels;
  for (const std::string& name : vector_features_to_try())
    levels.push_back(describe_cpu(name == "host" ? "" : name, 1).features);
  return levels;
}

// The tests that need the library skip themselves if it is not found.
TEST(RowCompilerLibrary, IsFoundWhereItWasBuilt) { EXPECT_EQ(can_compile_rows(), kBuildsLlvm); }

class RowCompiler : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
};

// For any chain of partial maxima that it is part of, and any value after it.
TEST_F(RowCompiler, ANaNIsTheMaximumOfItsRowWhereverItStands) {
  constexpr std::int64_t kColumns = 300;
  RowProgram program;
  program.columns = kColumns;
  program.buffers = {{.row_stride = kColumns}, {.is_output = true, .row_stride = 1}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores.push_back({1, program.add({.op = RowOp::row_signed_max, .a = x}), RowDomain::row});
  program.finish();
  for (const CpuFeatures features : features_to_try()) {
    const CompiledRows rows = compiled({program}, features);
    for (std::int64_t place = -1; place < kColumns; ++place) {
      RowBuffers buffers(program, 1, 7);
      auto* floats = reinterpret_cast<float*>(buffers.memory(0).data());
      for (std::int64_t i = 0; i < kColumns; ++i) floats[i] = static_cast<float>(i % 97) - 120;
      if (place >= 0) floats[place] = std::nanf("");
      buffers.run(rows.find(program));
      const float largest = buffers.stored(0)[0];
      EXPECT_TRUE(place < 0 ? largest == -24 : std::isnan(largest)) << largest << " with a NaN at " << place;
    }
  }
}

constexpr std::int64_t kBfloats = 0x10000;

// A program with one bf16 input, value 0; its outputs are the values that `result` adds.
template <class Result>
RowProgram of_every_bfloat(const Result& result) {
  RowProgram program;
  program.columns = 512;
  program.buffers = {{.dtype = DType::bf16, .row_stride = 512},
                     {.dtype = DType::bf16, .is_output = true, .row_stride = 512}};
  program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores.push_back(
      {1, program.add({.op = RowOp::convert, .a = result(program), .dtype = DType::bf16}), RowDomain::element});
  return program;
}
std::vector<std::uint16_t> given_for_every_bfloat(const RowProgram& program, CpuFeatures features) {
  RowBuffers buffers(program, kBfloats / program.columns, 3);
  auto* codes = reinterpret_cast<std::uint16_t*>(buffers.memory(0).data());
  std::iota(codes, codes + kBfloats, std::uint16_t{0});
  buffers.run(compiled({program}, features).find(program));
  const auto* given = reinterpret_cast<const std::uint16_t*>(buffers.memory(1).data());
  return {given, given + kBfloats};
}

// With fewer operations than a separate sigmoid has.
TEST_F(RowCompiler, RoundsTheSigmoidOfEveryBfloatAsTheReferenceDoes) {
  RowProgram program = of_every_bfloat([](RowProgram& rows) { return rows.add({.op = RowOp::bf16_sigmoid, .a = 0}); });
  program.finish();
  for (const CpuFeatures features : features_to_try()) {
    const std::vector<std::uint16_t> given = given_for_every_bfloat(program, features);
    for (std::size_t code = 0; code < given.size(); ++code)
      ASSERT_EQ(given[code], f32_to_bf16(reference_sigmoid(bf16_to_f32(static_cast<std::uint16_t>(code)))))
          << code << " on " << cpu_features_text(features);
  }
}

// Loud NaN among them.
TEST_F(RowCompiler, GivesTheBitsOfEveryHeldBfloatThoughItDoesNotRoundIt) {
  RowProgram rounded = of_every_bfloat([](RowProgram& rows) {
    const int limit = rows.add({.op = RowOp::constant, .number = 7});
    const int held = rows.add({.op = RowOp::at_most, .a = rows.add({.op = RowOp::neg, .a = 0}), .b = limit});
    const int converted = rows.add({.op = RowOp::convert, .a = held, .dtype = DType::bf16});
    return rows.add({.op = RowOp::mul, .a = converted, .b = rows.add({.op = RowOp::constant, .number = 1.3})});
  });
  RowProgram simplified = rounded;
  simplify_rows(simplified);
  rounded.finish();
  simplified.finish();
  EXPECT_LT(simplified.values.size(), rounded.values.size());
  for (const CpuFeatures features : features_to_try())
    EXPECT_EQ(given_for_every_bfloat(simplified, features), given_for_every_bfloat(rounded, features));
}

TEST_F(RowCompiler, GivesTheBitsOfTheCppText) {
  const std::vector<RowProgram> programs = random_programs(16, false, 7);
  const auto levels = features_to_try();
  for (const int lanes : {4, 16}) {
    // Wide vectors take long to compile for a machine without.
    const std::vector<RowProgram> some(programs.begin(), programs.begin() + (lanes == 4 ? 16 : 3));
    const SharedLibrary text = compiled_row_text(some, lanes);
    for (const CpuFeatures level : levels) {
      const auto code = compiled(some, level);
      for (const RowProgram& program : some) {
        RowBuffers wanted(program, kRows, 3), came(program, kRows, 3);
        wanted.run(text.find<RowFunction>(program.name().c_str()));
        came.run(code.find(program));
        ASSERT_EQ(difference(program, wanted, came), "") << cpu_features_text(level);
        ASSERT_TRUE(came.is_intact()) << program.text();
      }
    }
  }
}

// For every instruction set, and also with outputs that overlap inputs.
TEST_F(RowCompiler, GivesTheSameBitsOnEveryInstructionSet) {
  const std::vector<RowProgram> programs = random_programs(40, false, 11);
  const auto levels = features_to_try();
  const auto first = compiled(programs, levels.front());
  int laid_over = 0, in_pairs = 0, of_two_groups = 0, neighbours = 0;
  for (const RowProgram& program : programs) {
    in_pairs += program.in_pairs ? 1 : 0;
    of_two_groups += program.in_pairs && program.group == 16 ? 1 : 0;
    for (const RowBuffer& buffer : program.buffers) neighbours += buffer.interleaved_with >= 0 ? 1 : 0;
  }
  EXPECT_GT(in_pairs, 3);
  EXPECT_GT(of_two_groups, 1);
  EXPECT_GT(neighbours, 0);
  for (const CpuFeatures level : levels) {
    const auto code = compiled(programs, level);
    for (const RowProgram& program : programs) {
      RowBuffers wanted(program, kRows, 5), came(program, kRows, 5);
      wanted.run(first.find(program));
      came.run(code.find(program));
      ASSERT_EQ(difference(program, wanted, came), "") << cpu_features_text(level);
      ASSERT_TRUE(came.is_intact()) << program.text();
      RowBuffers over(program, kRows, 5);
      if (over.lay_over() == 0) continue;
      ++laid_over;
      over.run(code.find(program));
      ASSERT_EQ(difference(program, wanted, over), "") << cpu_features_text(level);
      ASSERT_TRUE(over.is_intact()) << program.text();
    }
  }
  EXPECT_GE(laid_over, 2 * static_cast<int>(levels.size()));
}

// The first output overlaps an input that only the second output needs.
TEST_F(RowCompiler, ReadsWhatOutputsLieOverBeforeItWrites) {
  RowProgram program;
  program.columns = 65;
  const auto load = [&] {
    program.buffers.push_back({.dtype = DType::f32, .row_stride = program.columns});
    return program.add(
        {.op = RowOp::load, .domain = RowDomain::element, .buffer = static_cast<int>(program.buffers.size()) - 1});
  };
  const auto store_negated = [&](int value) {
    const int negated = program.add({.op = RowOp::neg, .a = value});
    program.buffers.push_back({.dtype = DType::f32, .is_output = true, .row_stride = program.columns});
    program.stores.push_back({static_cast<int>(program.buffers.size()) - 1, negated, RowDomain::element});
  };
  const int first = load(), second = load();
  store_negated(first);
  store_negated(second);
  program.finish();
  ASSERT_EQ(program.buffers[2].over, 1);
  ASSERT_EQ(program.buffers[3].over, 0);
  for (const CpuFeatures level : features_to_try()) {
    const auto code = compiled({program}, level);
    RowBuffers wanted(program, kRows, 7), over(program, kRows, 7);
    wanted.run(code.find(program));
    ASSERT_EQ(over.lay_over(), 2);
    over.run(code.find(program));
    EXPECT_EQ(difference(program, wanted, over), "") << cpu_features_text(level);
  }
}

// In pairs, next to elements of bf16.
TEST_F(RowCompiler, StoresCodesAsTheyWereLoaded) {
  RowProgram program;
  program.columns = 64;
  const auto add_buffer = [&](DType dtype, bool is_output) {
    program.buffers.push_back({.dtype = dtype, .is_output = is_output, .row_stride = program.columns});
    return static_cast<int>(program.buffers.size()) - 1;
  };
  const auto load = [&](DType dtype) {
    return program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = add_buffer(dtype, false)});
  };
  const int x = load(DType::bf16);
  for (const DType dtype : {DType::i8, DType::f8e4m3}) {
    const int codes = load(dtype);
    program.stores.push_back({add_buffer(dtype, true), codes, RowDomain::element});
  }
  const int negated = program.add({.op = RowOp::neg, .a = x});
  program.stores.push_back({add_buffer(DType::bf16, true), negated, RowDomain::element});
  program.finish();
  ASSERT_TRUE(program.in_pairs);
  // Wherever this runs: operations of operands that do not fit them are a problem of theirs.
  for (const CpuFeatures level : {CpuFeatures::baseline, CpuFeatures::avx2, CpuFeatures::avx512})
    compiled({program}, level);
  const SharedLibrary text = compiled_row_text({program}, 4);
  for (const CpuFeatures level : features_to_try()) {
    const auto code = compiled({program}, level);
    RowBuffers wanted(program, kRows, 9), came(program, kRows, 9);
    wanted.run(text.find<RowFunction>(program.name().c_str()));
    came.run(code.find(program));
    EXPECT_EQ(difference(program, wanted, came), "") << cpu_features_text(level);
  }
}

TEST_F(RowCompiler, StaysNearDoublePrecision) {
  const std::vector<RowProgram> programs = random_programs(60, true, 13);
  const auto code = compiled(programs, features_to_try().back());
  int compared = 0;
  for (const RowProgram& program : programs) {
    RowBuffers buffers(program, kRows, 17);
    const auto wanted = interpret_row_program(program, buffers.data(), kRows);
    buffers.run(code.find(program));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::vector<float> came = buffers.stored(i);
      ASSERT_EQ(came.size(), wanted[i].size());
      for (std::size_t k = 0; k < came.size(); ++k, ++compared)
        ASSERT_NEAR(static_cast<double>(came[k]), wanted[i][k], 1e-3) << program.text();
    }
  }
  EXPECT_GT(compared, 5000);
}

TEST_F(RowCompiler, ComputesTheRowsItIsGivenAndNoOthers) {
  const std::vector<RowProgram> programs = random_programs(15, false, 19);
  const auto code = compiled(programs, features_to_try().back());
  for (const RowProgram& program : programs) {
    auto* function = code.find(program);
    RowBuffers whole(program, kRows, 23), parts(program, kRows, 23), none(program, kRows, 23);
    const RowBuffers untouched(program, kRows, 23);
    whole.run(function);
    parts.run(function, 1, 3);
    parts.run(function, 0, 1);
    none.run(function, 2, 2);
    EXPECT_EQ(difference(program, whole, parts), "");
    EXPECT_EQ(difference(program, untouched, none), "");
  }
}

// So keys of code have only the width, and tests try each width once.
TEST_F(RowCompiler, MakesTheSameObjectForEveryLevelWithVectorsAsWide) {
  for (const RowProgram& program : random_programs(4, false, 13)) {
    std::string problem;
    const std::vector<std::byte> object = compile_rows(program, CpuFeatures::avx512, problem);
    EXPECT_FALSE(object.empty()) << problem;
    for (const CpuFeatures level : {CpuFeatures::avx512_vnni, CpuFeatures::avx512_bf16, CpuFeatures::amx})
      EXPECT_EQ(compile_rows(program, level, problem), object) << cpu_features_text(level) << "\n" << program.text();
  }
}

// Objects are stored under a key of their source.
TEST_F(RowCompiler, MakesTheSameObjectOfTheSameProgramOnEveryThread) {
  const std::vector<RowProgram> programs = random_programs(8, false, 29);
  ThreadPool threads(4);
  std::vector<std::vector<std::byte>> objects(programs.size());
  threads.run(8, [&](std::int64_t i, int) {
    std::string problem;
    objects[static_cast<std::size_t>(i)] =
        compile_rows(programs[static_cast<std::size_t>(i)], CpuFeatures::avx2, problem);
  });
  // A program with numbers only, without a vector, may be the same for every level.
  int of_their_level = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    std::string problem;
    EXPECT_FALSE(objects[i].empty());
    EXPECT_EQ(objects[i], compile_rows(programs[i], CpuFeatures::avx2, problem));
    of_their_level += objects[i] != compile_rows(programs[i], CpuFeatures::baseline, problem) ? 1 : 0;
  }
  EXPECT_GE(of_their_level, 6);
}

}  // namespace weft::compile_rows_test
