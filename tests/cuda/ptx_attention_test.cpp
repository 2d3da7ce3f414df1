// Every attention kernel as nvcc made it, of each type and width of pages, one row a sequence and many: the bits of the
// same kernel in the emulator.

#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/sample_call.h"
#include "tests/cuda/cuda_context.h"
#include "tests/cuda/ptx/built_ptx.h"

namespace weft::ptx_attention_test {

class PtxAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = ptx::absence_of_ptx(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

using Sequences = std::vector<std::pair<int, int>>;  // rows of this step and tokens, by sequence

SampleCall call_of(const Context& context, const KvLayout& kv, const Sequences& sequences) {
  int rows = 0, longest = 0;
  for (const auto& [of_step, length] : sequences) {
    rows += of_step;
    longest = std::max(longest, length);
  }
  const std::int64_t pages = (longest + kv.block - 1) / kv.block * static_cast<std::int64_t>(sequences.size());
  const Sample sample{{{"query", {rows, kv.heads * 2, kv.head_dim}},
                       SampleTensor::pages("kv", kv, pages),
                       SampleTensor::batch("batch", sequences, static_cast<int>(kv.block))},
                      {{"scale", 0.125}}};
  return make_sample_call(context.ops.at("attention"), sample, DType::bf16);
}

TEST_F(PtxAttention, HasTheEmulatorsBitsInEveryKernel) {
  const auto emulated = cuda_context(), interpreted = cuda_context();
  ptx::BuiltPtx built(89);
  built.take_over(*interpreted);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const std::int64_t head_dim : {64, 128, 256}) {
      if (dtype == DType::f32 && head_dim == 256) continue;  // for which there is no kernel
      const KvLayout kv{.dtype = dtype, .block = 16, .heads = 1, .head_dim = head_dim};
      for (const Sequences& sequences : {Sequences{{1, 300}, {1, 5}}, Sequences{{3, 20}, {1, 9}}}) {
        const SampleCall call = call_of(*emulated, kv, sequences);
        SCOPED_TRACE(call.text);
        EXPECT_EQ(difference_of_results(by_cuda(*emulated, "attention", call.operands, call.attributes),
                                        by_cuda(*interpreted, "attention", call.operands, call.attributes)),
                  "");
      }
    }
  std::vector<std::string> wanted;
  for (const auto& [name, file] : built.kernels())
    if (name.find("attention") != std::string::npos) wanted.push_back(name);
  EXPECT_EQ(wanted.size(), 19u);
  std::vector<std::string> used = built.used();
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, wanted);
}

}  // namespace weft::ptx_attention_test
