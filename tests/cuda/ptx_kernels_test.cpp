// The CUDA kernels as compiled by nvcc, run on the host for the ops that they compute: the bits of the same kernels in
// the emulator, and vLLM's records.

#include <cstdio>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "tests/cuda/cuda_context.h"
#include "tests/cuda/ptx/built_ptx.h"
#include "tests/cuda/recorded_calls.h"

namespace weft::ptx_kernels_test {

using namespace ptx;
using ptx::Interpreter;  // not the interpreter of graphs

class PtxKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const std::string reason = absence_of_ptx(); !reason.empty())
      std::printf("count: the PTX of CUDA kernels is not run: %s\n", reason.c_str());
  }
  void SetUp() override {
    if (const std::string reason = absence_of_ptx(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// The error of a kernel's text, or "".
std::string problem_of(Interpreter& file, const std::string& kernel) {
  try {
    return file.program(kernel).code.size() > 10 ? "" : kernel + " has no code";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(PtxKernels, HoldOnlyInstructionsThatAreKnown) {
  EXPECT_EQ(architectures_of_ptx(), (std::vector<int>{80, 89}));
  for (const int architecture : architectures_of_ptx()) {
    const BuiltPtx built(architecture);
    EXPECT_GE(built.kernels().size(), 200u);
    for (const auto& [name, file] : built.kernels()) EXPECT_EQ(problem_of(*file, name), "");
  }
}

TEST_F(PtxKernels, GiveTheEmulatorsBitsOnEverySampleTheyTake) {
  const auto emulated = cuda_context();
  for (const int architecture : architectures_of_ptx()) {
    BuiltPtx built(architecture);
    const auto context = cuda_context();
    built.take_over(*context);
    for (const std::string& provider : cuda_providers(*context)) {
      for (const std::string& op : ops_of_provider(*context, provider)) {
        int taken = 0;
        for (const SampleCall& call : sample_calls(context->ops.at(op))) {
          SCOPED_TRACE(fmt::format("sm_{} {} {}", architecture, provider, call.text));
          if (!supports_of_cuda(*context, op, call.operands, call.attributes, provider)) continue;
          const std::vector<Tensor> came = by_cuda(*context, op, call.operands, call.attributes, provider);
          const std::vector<Tensor> wanted = by_cuda(*emulated, op, call.operands, call.attributes, provider);
          EXPECT_EQ(difference_of_results(wanted, came), "") << op;
          ++taken;
        }
        EXPECT_GT(taken, 0) << op << " of " << provider << " takes none of the samples";
      }
    }
    EXPECT_GE(built.used().size(), 40u);
  }
}

// The forms of kernels for addresses that are not aligned for wider vectors.
TEST_F(PtxKernels, GiveTheEmulatorsBitsWhereOperandsBeginBetweenVectors) {
  const auto emulated = cuda_context();
  BuiltPtx built(89);
  const auto context = cuda_context();
  built.take_over(*context);
  for (const std::string& op : ops_of_provider(*context, "cuda")) {
    const int bytes = context->kernel_for(op, "cuda").vector_bytes;
    if (bytes == 16 || op == "attention") continue;
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
      SCOPED_TRACE(call.text);
      std::vector<Tensor> operands;
      for (const Tensor& operand : call.operands) operands.push_back(moved_by(operand, bytes));
      const std::vector<Tensor> wanted = by_cuda(*emulated, op, call.operands, call.attributes);
      EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, op, operands, call.attributes)), "") << op;
    }
  }
  EXPECT_EQ(built.used(), (std::vector<std::string>{"head_rotation_bf16_pairs", "head_rotation_f16_pairs",
                                                    "head_rotation_f32_pairs"}));
}

TEST_F(PtxKernels, GiveWhatVllmRecorded) {
  BuiltPtx built(89);
  for (const cuda::Mathematics mathematics : cuda::kMathematics) {
    const auto context = cuda_context();
    built.take_over(*context);
    EXPECT_GE(expect_recorded_calls(*context, mathematics), 460);
  }
  EXPECT_GE(built.used().size(), 50u);
}

}  // namespace weft::ptx_kernels_test
