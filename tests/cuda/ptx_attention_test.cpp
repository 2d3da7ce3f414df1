// Every attention kernel as nvcc made it, of each type and width of pages, one row a sequence and many: the bits of the
// same kernel in the emulator.

#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/cuda_context.h"
#include "tests/cuda/ptx/built_ptx.h"

namespace weft::ptx_attention_test {

class PtxAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = ptx::absence_of_ptx(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(PtxAttention, HasTheEmulatorsBitsInEveryKernel) {
  const auto emulated = cuda_context(), interpreted = cuda_context();
  ptx::BuiltPtx built(89);
  built.take_over(*interpreted);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const std::int64_t head_dim : {64, 128, 256}) {
      if (dtype == DType::f32 && head_dim == 256) continue;  // no kernel exists for it
      const KvLayout kv{.dtype = dtype, .block = 16, .heads = 1, .head_dim = head_dim};
      const auto expect_equal = [&](const AttentionCase::Sequences& sequences, const char* provider,
                                    const Attribute& window = {}) {
        const SampleCall call = AttentionCase{kv, 2, DType::bf16, sequences, window}.call(*emulated);
        SCOPED_TRACE(provider + (" " + call.text));
        EXPECT_EQ(difference_of_results(by_cuda(*emulated, "attention", call.operands, call.attributes, provider),
                                        by_cuda(*interpreted, "attention", call.operands, call.attributes, provider)),
                  "");
      };
      expect_equal({{1, 300}, {1, 5}}, "cuda");
      expect_equal({{3, 20}, {1, 9}}, "cuda");
      expect_equal({{1, 300}, {1, 5}}, "cuda", 40);
      expect_equal({{5, 80}, {1, 9}}, "cuda", 7);
      if (dtype == DType::f32 || head_dim == 256) continue;
      expect_equal({{33, 70}, {1, 9}}, "cuda_mma");
      expect_equal({{17, 300}}, "cuda_mma");
      expect_equal({{33, 330}}, "cuda_mma", 40);
    }
  std::vector<std::string> wanted;
  for (const auto& [name, file] : built.kernels())
    if (name.find("attention") != std::string::npos) wanted.push_back(name);
  EXPECT_EQ(wanted.size(), 23u);
  std::vector<std::string> used = built.used();
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, wanted);
}

// Rows one at a time, if V of a token that some rows do not see is not finite.
TEST_F(PtxAttention, HasTheEmulatorsBitsWhereARowMustNotSeeANaN) {
  const auto emulated = cuda_context(), interpreted = cuda_context();
  ptx::BuiltPtx built(80);
  built.take_over(*interpreted);
  const KvLayout kv{.dtype = DType::bf16, .block = 16, .heads = 1, .head_dim = 64};
  const SampleCall call = AttentionCase{kv, 1, DType::bf16, {{20, 20}}}.call(*emulated);
  auto* pages = reinterpret_cast<std::uint16_t*>(call.operands[1].data());
  pages[kv_value_offset(kv, 0, 0) + 9 * 64 + 5] = 0x7fc0;
  const std::vector<Tensor> wanted = by_cuda(*emulated, "attention", call.operands, call.attributes, "cuda_mma");
  EXPECT_EQ(
      difference_of_results(wanted, by_cuda(*interpreted, "attention", call.operands, call.attributes, "cuda_mma")),
      "");
  const auto* codes = reinterpret_cast<const std::uint16_t*>(wanted[0].data());
  EXPECT_LT(codes[8 * 64 + 5] & 0x7fff, 0x7f80) << "row 8 shows what it does not see";
  EXPECT_GT(codes[9 * 64 + 5] & 0x7fff, 0x7f80) << "row 9 sees a NaN";
}

}  // namespace weft::ptx_attention_test
