// The PTX interpreter on texts of these tests: results of single instructions, lanes that diverge and converge, faults
// of kernels, and texts that are no PTX.

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/float16.h"
#include "tests/cuda/ptx/interpreter.h"
#include "tests/tensor/random_source.h"
#include "tests/thrown_message.h"

namespace weft::ptx_interpreter_test {

using namespace ptx;
using ptx::Interpreter;  // not the interpreter of graphs

// A kernel that reads and writes `memory`, 32 words, each thread its own word from %rd2 on; `body` has its
// instructions.
std::string kernel_text(const std::string& body) {
  return ".version 9.0\n.target sm_89\n.address_size 64\n.visible .entry test(\n\t.param .u64 test_param_0\n)\n"
         ".maxntid 64, 1, 1\n{\n"
         "\t.reg .pred %p<8>;\n\t.reg .b16 %rs<8>;\n\t.reg .b32 %r<16>;\n\t.reg .f32 %f<8>;\n\t.reg .b64 %rd<8>;\n"
         "\t.shared .align 4 .b8 common[256];\n"
         "\tld.param.u64 %rd1, [test_param_0];\n\tcvta.to.global.u64 %rd1, %rd1;\n\tmov.u32 %r0, %tid.x;\n"
         "\tmul.wide.u32 %rd2, %r0, 4;\n\tadd.s64 %rd2, %rd1, %rd2;\n\tld.global.u32 %r1, [%rd2];\n" +
         body + "\tst.global.u32 [%rd2], %r2;\n\tret;\n}\n";
}

std::vector<std::uint32_t> run(const std::string& text, std::vector<std::uint32_t> words, std::uint32_t threads = 32) {
  ptx::Interpreter interpreter(text, "test.ptx");
  cuda::MemoryMap memory;
  memory.allow_writing("words", words.data(), words.size() * 4);
  const void* arguments = words.data();
  interpreter.run("test", {.blocks = 1, .threads = threads}, &arguments, sizeof arguments, memory, 100000);
  return words;
}
std::uint32_t result_of(const std::string& body, std::uint32_t given) { return run(kernel_text(body), {given}, 1)[0]; }
template <class Kind>
std::string problem_of(const std::string& body, std::uint32_t threads = 32) {
  return message_of<Kind>([&] { run(kernel_text(body), std::vector<std::uint32_t>(threads), threads); });
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(PtxInterpreter, GivesWhatSingleInstructionsGive) {
  struct Row {
    const char* body;  // of %r1 makes %r2
    std::uint32_t given, wanted;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const Row rows[] = {
      {"prmt.b32 %r2, %r1, 0x77665544, 0x5410;", 0x33221100, 0x55441100},
      {"prmt.b32 %r2, %r1, 0, 0xba98;", 0x80017f01, 0xff000000},
      {"shl.b32 %r2, %r1, 32;", 0xffffffff, 0},
      {"shr.s32 %r2, %r1, 40;", 0x80000000, 0xffffffff},
      {"shr.u32 %r2, %r1, 4;", 0x80000000, 0x08000000},
      {"mul.hi.u32 %r2, %r1, %r1;", 0xffffffff, 0xfffffffe},
      {"{ .reg .b64 x; cvt.s64.s32 x, %r1; mul.hi.s64 x, x, 3; cvt.u32.u64 %r2, x; }", 0xffffffff, 0xffffffff},
      {"{ .reg .b64 x; cvt.s64.s32 x, %r1; mul.hi.u64 x, x, 3; cvt.u32.u64 %r2, x; }", 0xffffffff, 2},
      {"mul.lo.s32 %r2, %r1, -3;", 7, 0xffffffeb},
      {"mad.lo.s32 %r2, %r1, %r1, 1;", 0xffffffff, 2},
      {"div.s32 %r2, %r1, -1;", 0x80000000, 0x80000000},
      {"rem.u32 %r2, %r1, 0;", 5, 5},
      {"max.s32 %r2, %r1, 3;", 0xffffffff, 3},
      {"max.u32 %r2, %r1, 3;", 0xffffffff, 0xffffffff},
      {"bfe.u32 %r2, %r1, 4, 8;", 0x12345678, 0x67},
      {"bfi.b32 %r2, %r1, 0x11111111, 4, 8;", 0xabcd, 0x11111cd1},
      {"bfi.b32 %r2, %r1, 0, 28, 31;", 0x12345678, 0x80000000},
      {"{ .reg .b64 x; cvt.u64.u32 x, %r1; bfi.b64 x, x, 0xffffffffffffffff, 40, 16; shr.u64 x, x, 36; "
       "cvt.u32.u64 %r2, x; }",
       0xabcd, 0x0ffabcdf},
      {"{ .reg .b64 x; cvt.u64.u32 x, %r1; bfi.b64 x, x, 0, 60, 62; shr.u64 x, x, 32; cvt.u32.u64 %r2, x; }",
       0x12345678, 0x80000000},
      {"lop3.b32 %r2, %r1, 0xff00ff00, 0x0f0f0f0f, 0xea;", 0x12345678, 0x1f3f5f7f & 0x1f0f5f0f},
      {"shf.l.wrap.b32 %r2, %r1, 0x1, 8;", 0x80000000, 0x180},
      {"clz.b32 %r2, %r1;", 0x00010000, 15},
      {"popc.b32 %r2, %r1;", 0xf0f00001, 9},
      {"mov.b32 %f1, %r1; max.f32 %f2, %f1, 0f3F800000; mov.b32 %r2, %f2;", 0x7fc00000, bits(1)},
      {"mov.b32 %f1, %r1; max.NaN.f32 %f2, %f1, 0f3F800000; mov.b32 %r2, %f2;", 0xffc00001, 0x7fffffff},
      {"mov.b32 %f1, %r1; min.f32 %f2, %f1, 0f00000000; mov.b32 %r2, %f2;", bits(-0.0f), bits(-0.0f)},
      {"mov.b32 %f1, %r1; mul.rn.f32 %f2, %f1, %f1; add.rn.f32 %f3, %f2, 0fBF800000; mov.b32 %r2, %f3;", 0x3f800800,
       0x3a000000},
      {"mov.b32 %f1, %r1; fma.rn.f32 %f3, %f1, %f1, 0fBF800000; mov.b32 %r2, %f3;", 0x3f800800, 0x3a000400},
      {"mov.b32 %f1, %r1; rcp.approx.ftz.f32 %f2, %f1; mov.b32 %r2, %f2;", 0x00000001, bits(infinity)},
      {"mov.b32 %f1, %r1; ex2.approx.ftz.f32 %f2, %f1; mov.b32 %r2, %f2;", bits(-130), 0},
      {"mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r2, %f1;", bits(-3.9f), 0xfffffffd},
      {"mov.b32 %f1, %r1; cvt.rzi.u32.f32 %r2, %f1;", bits(-3.9f), 0},
      {"mov.b32 %f1, %r1; cvt.rni.s32.f32 %r2, %f1;", bits(2.5f), 2},
      {"mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r2, %f1;", bits(1e10f), 0x7fffffff},
      {"mov.b32 %f1, %r1; cvt.rn.bf16x2.f32 %r2, %f1, 0f3F800000;", 0x40008000, 0x40003f80},
      {"mov.b32 %f1, %r1; cvt.rn.bf16x2.f32 %r2, %f1, 0f3F800000;", 0x40018000, 0x40023f80},
      {"mov.b32 %f1, %r1; cvt.rn.f16x2.f32 %r2, %f1, 0f3F800000;", bits(70000), 0x7c003c00},
      {"mov.b32 %f1, %r1; cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, 0fBF800000; cvt.u32.u16 %r2, %rs1;", bits(1000),
       0x7eb8},
      {"mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r2, {%rs2, %rs1};", 0x12345678, 0x56781234},
      {"fma.rn.bf16x2 %r2, %r1, %r1, 0x80008000;", 0x3f818000, 0x3f820000},
      {"mul.rn.f16x2 %r2, %r1, %r1;", 0x3c01fc00, 0x3c027c00},
      {"cvt.s32.s8 %r2, %r1;", 0x00000080, 0xffffff80},
      {"setp.lt.s32 %p1, %r1, 0; selp.b32 %r2, 1, 2, %p1;", 0x80000000, 1},
      {"setp.lt.u32 %p1, %r1, 1; not.pred %p2, %p1; selp.b32 %r2, 1, 2, %p2;", 0x80000000, 1},
      {"mov.b32 %f1, %r1; setp.ltu.f32 %p1, %f1, 0f00000000; selp.b32 %r2, 1, 2, %p1;", 0x7fc00000, 1},
      {"mov.b32 %f1, %r1; setp.ne.f32 %p1, %f1, %f1; selp.b32 %r2, 1, 2, %p1;", 0x7fc00000, 2},
      {"mov.u32 %r2, 7; setp.eq.s32 %p1, %r1, 4; @!%p1 mov.u32 %r2, 9;", 4, 7},
      {"{ .reg .b32 inner; add.s32 inner, %r1, 0x10; mov.b32 %r2, inner; }", 1, 17},
  };
  for (const Row& row : rows) EXPECT_EQ(result_of(row.body, row.given), row.wanted) << row.body;
}

TEST(PtxInterpreter, TakesLanesApartAndTogether) {
  // Odd lanes loop as often as their index; then all exchange.
  const std::string body =
      "mov.u32 %r2, 0; and.b32 %r3, %r0, 1; setp.eq.s32 %p1, %r3, 0; @%p1 bra $EVEN;\n"
      "$LOOP: add.s32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r0; @%p2 bra $LOOP;\nbra.uni $JOIN;\n"
      "$EVEN: mov.u32 %r2, 100;\n"
      "$JOIN: shfl.sync.bfly.b32 %r4|%p3, %r2, 1, 31, -1; mov.b32 %r2, %r4;\n";
  const std::vector<std::uint32_t> came = run(kernel_text(body), std::vector<std::uint32_t>(32));
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(came[i], i % 2 == 0 ? i + 1 : 100u) << i;
}

TEST(PtxInterpreter, ShufflesWithinSegments) {
  struct Row {
    const char* shuffle;
    std::function<std::uint32_t(std::uint32_t)> source;
  };
  const Row rows[] = {
      {"shfl.sync.up.b32 %r2, %r0, 2, 0, -1;", [](std::uint32_t lane) { return lane < 2 ? lane : lane - 2; }},
      {"shfl.sync.down.b32 %r2, %r0, 3, 31, -1;", [](std::uint32_t lane) { return lane > 28 ? lane : lane + 3; }},
      // Segments of 8: 32 - 8 in the bits from 8 on.
      {"shfl.sync.idx.b32 %r2, %r0, 5, 0x181f, -1;", [](std::uint32_t lane) { return lane / 8 * 8 + 5; }},
      {"shfl.sync.down.b32 %r2, %r0, 4, 0x181f, -1;",
       [](std::uint32_t lane) { return lane % 8 < 4 ? lane + 4 : lane; }},
  };
  for (const Row& row : rows) {
    const std::vector<std::uint32_t> came = run(kernel_text(row.shuffle), std::vector<std::uint32_t>(32));
    for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(came[lane], row.source(lane)) << row.shuffle << lane;
  }
  EXPECT_EQ(run(kernel_text("setp.lt.u32 %p1, %r0, 5; vote.sync.ballot.b32 %r2, %p1, -1;"),
                std::vector<std::uint32_t>(32))[9],
            31u);
  EXPECT_EQ(run(kernel_text("xor.b32 %r3, %r0, 0x80000005; redux.sync.max.u32 %r2, %r3, -1;"),
                std::vector<std::uint32_t>(32)),
            std::vector<std::uint32_t>(32, 0x8000001f));
}

// A and B from each lane's input, changed a little from word to word; element `i` of the result.
std::string product_text(int i) {
  return fmt::format(
      "xor.b32 %r3, %r1, 0x00010002; xor.b32 %r4, %r1, 0x00030001; xor.b32 %r5, %r1, 0x00020003; xor.b32 %r6, %r1, "
      "0x00040004; mov.b32 %f1, 0f3F800000; mov.b32 %f2, 0f40000000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f3, %f4, %f5, %f6}}, {{%r1, %r3, %r4, %r5}}, {{%r6, %r1}}, "
      "{{%f1, %f2, %f1, %f2}};\nmov.b32 %r2, %f{};\n",
      3 + i);
}

// The elements of each lane, as in the PTX ISA.
TEST(PtxInterpreter, MultipliesMatricesOfAWarp) {
  std::vector<std::uint32_t> words(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 0x3c004000u + lane * 0x00080010u;
  const auto value = [&](std::uint32_t lane, std::uint32_t change, std::uint32_t half) {
    return f16_to_f32(static_cast<std::uint16_t>((words[lane] ^ change) >> 16 * half));
  };
  constexpr std::uint32_t kOfA[] = {0, 0x00010002, 0x00030001, 0x00020003}, kOfB[] = {0x00040004, 0};
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::vector<std::uint32_t> came = run(kernel_text(product_text(static_cast<int>(i))), words);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + i % 2;
      float wanted = i % 2 == 0 ? 1 : 2;
      for (std::uint32_t k = 0; k < 16; ++k) {
        const std::uint32_t in_group = k % 8 / 2;
        const std::uint32_t register_of_a = (row < 8 ? 0 : 1) + (k < 8 ? 0 : 2), register_of_b = k < 8 ? 0 : 1;
        wanted = std::fma(value(row % 8 * 4 + in_group, kOfA[register_of_a], k % 2),
                          value(column * 4 + in_group, kOfB[register_of_b], k % 2), wanted);
      }
      EXPECT_EQ(std::bit_cast<float>(came[lane]), wanted) << lane << ", " << i;
    }
  }
  EXPECT_NE(problem_of<DeviceError>(product_text(0), 16).find("in a warp of fewer lanes"), std::string::npos);
  EXPECT_NE(problem_of<DeviceError>("setp.eq.u32 %p1, %r0, 3; @%p1 ret;\n" + product_text(0)).find("lane 3"),
            std::string::npos);
}

TEST(PtxInterpreter, HoldsWarpsAtTheBarrier) {
  // Each thread of two warps passes its index to the opposite one.
  const std::string body =
      "mov.u32 %r3, common; shl.b32 %r4, %r0, 2; add.s32 %r5, %r3, %r4; st.shared.u32 [%r5], %r0; bar.sync 0;\n"
      "sub.s32 %r6, 252, %r4; add.s32 %r6, %r3, %r6; ld.shared.u32 %r2, [%r6];\n";
  const std::vector<std::uint32_t> came = run(kernel_text(body), std::vector<std::uint32_t>(64), 64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(came[i], 63 - i);
  std::string without = body;
  without.erase(without.find("bar.sync 0;"), 11);
  EXPECT_NE(problem_of<DeviceError>(without, 64).find("of shared memory, which no thread wrote"), std::string::npos);
}

TEST(PtxInterpreter, NamesWhatAKernelDoesWrong) {
  struct Row {
    const char* body;
    const char* says;
  };
  const Row rows[] = {
      {"mov.u32 %r2, 0; st.global.u32 [%rd2+128], %r2;",
       "thread 0, line 21 of the PTX: st.global.u32 [%rd2+128], %r2 writes"},
      {"ld.global.u32 %r2, [%rd1+128];", "memory that was not given"},
      {"ld.global.u32 %r2, [%rd2+2];", "no multiple of them"},
      {"mov.u32 %r2, common; ld.shared.u32 %r2, [%r2+256];", "reads byte 256 of 256 bytes of shared memory"},
      {"ld.param.u32 %r2, [test_param_0+8];", "reads byte 8 of 8 bytes of arguments"},
      {"setp.eq.s32 %p1, %r0, 3; @%p1 ret; shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;",
       "waits for lane 3, which has ended"},
      {"setp.eq.s32 %p1, %r0, 3; @%p1 bra $L; shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; $L: mov.u32 %r2, 0; bar.sync 0;",
       "never come"},
      {"shfl.sync.bfly.b32 %r2, %r0, 1, 31, 0xff;", "a mask without the lane itself"},
      {"$L: mov.u32 %r2, 0; bra $L;", "the launch does not end"},
      {"trap;", "stops the launch"},
  };
  for (const Row& row : rows) {
    const std::string problem = problem_of<DeviceError>(row.body);
    EXPECT_NE(problem.find(row.says), std::string::npos) << row.body << ": " << problem;
    EXPECT_NE(problem.find("[test] block (0, 0)"), std::string::npos) << problem;
  }
}

TEST(PtxInterpreter, RefusesWhatItDoesNotKnow) {
  struct Row {
    const char* body;
    const char* says;
  };
  const Row rows[] = {
      {"add.f32 %f1, %f2, %f3;", "[test.ptx:21] no instruction add.f32 is known: add.f32 %f1, %f2, %f3"},
      {"mul.ftz.f32 %f1, %f2, %f3;", "no instruction mul.ftz.f32"},
      {"add.s32 %r1, %r2;", "add.s32 does not take these operands"},
      {"add.s32 %rd1, %r2, %r3;", "add.s32 does not take these operands"},
      {"mov.u32 %r2, %clock;", "mov.u32 does not take these operands"},
      {"bar.sync 1;", "bar.sync does not take these operands"},
      {"bra $NOWHERE;", "$NOWHERE is neither a label nor a name that was declared"},
      {"add.s32 %r99, %r2, %r3;", "does not take these operands"},
      {"mov.u32 %r2, 07;", "neither a label nor"},
      {".loc 1;", "no instruction .loc"},
      {".pragma \"unknown\";", "no pragma unknown"},
      {"$A: $A: ret;", "label $A stands twice"},
      {".reg .b32 %r<3>;", "%r is declared twice"},
      {".reg .b128 %q;", "registers are of"},
      {".local .align 8 .b8 depot[1000000];", "bytes are more than"},
      {"mov.u32 %r2, 0x1ffffffff2ffffffff;", "0x1ffffffff2ffffffff is neither"},
  };
  for (const Row& row : rows) {
    const std::string problem = problem_of<UserError>(row.body);
    EXPECT_NE(problem.find(row.says), std::string::npos) << row.body << ": " << problem;
  }
  const auto refusal = [](const std::string& text) { return message_of([&] { ptx::Interpreter(text, "x.ptx"); }); };
  EXPECT_NE(refusal("").find("[x.ptx:1] wanted .version, but is the end of the text"), std::string::npos);
  EXPECT_NE(refusal(".version 9.0\n.target sm_90a\n.address_size 32").find("[x.ptx:3] wanted 64, but is 32"),
            std::string::npos);
  EXPECT_NE(refusal(".version 9.0 .target sm_90 .address_size 64 .func f").find("wanted .entry, but is .func"),
            std::string::npos);
  EXPECT_NE(refusal(".version 9.0 /*").find("a comment has no end"), std::string::npos);
  EXPECT_NE(refusal("\xff").find("PTX has no character 255"), std::string::npos);
}

// A letter, a sign or a part of a text that is another's, left out, or twice: an error or another kernel, and no more.
TEST(PtxInterpreter, SurvivesBrokenText) {
  const std::string whole = kernel_text(
      "mov.u32 %r2, 0; and.b32 %r3, %r0, 1; setp.eq.s32 %p1, %r3, 0; @%p1 bra $EVEN;\n"
      "$LOOP: add.s32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r0; @%p2 bra $LOOP;\nbra.uni $JOIN;\n"
      "$EVEN: mov.u32 %r2, 100; mov.b32 {%rs1, %rs2}, %r1;\n"
      "$JOIN: shfl.sync.bfly.b32 %r4|%p3, %r2, 1, 31, -1; bar.sync 0; st.shared.f32 [common+4], 0f3F800000;\n");
  RandomSource random(7);
  const auto place = [&] {
    return static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(whole.size()) - 1));
  };
  int refused = 0, ran = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (std::int64_t changes = random.integer(1, 2); changes > 0; --changes) {
      const std::size_t at = std::min(place(), text.size());
      const auto count = static_cast<std::size_t>(random.integer(1, 4));
      switch (random.integer(0, 3)) {
        case 0:
          text.erase(at, count);
          break;
        case 1:
          text.insert(at, whole.substr(place(), count));
          break;
        case 2:
          text.resize(at);
          break;
        default:
          text.replace(at, 1, 1, static_cast<char>(random.integer(1, 255)));
      }
    }
    try {
      run(text, std::vector<std::uint32_t>(32));
      ++ran;
    } catch (const UserError&) {
      ++refused;
    } catch (const DeviceError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(ran, 20);
}

}  // namespace weft::ptx_interpreter_test
