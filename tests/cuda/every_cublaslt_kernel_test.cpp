// Kernels of provider cublaslt against the meanings of their ops, on the samples: without a queue the host computes
// what it computes in the library's place on a fake device.

#include <gtest/gtest.h>

#include "compiler/sample_call.h"
#include "kernels/select.h"
#include "tests/cuda/cuda_context.h"

namespace weft::every_cublaslt_kernel_test {

TEST(EveryCublasltKernel, AgreesWithTheMeaningOnEverySampleItTakes) {
  const auto context = cuda_context();
  const std::vector<std::string> ops = ops_of_provider(*context, "cublaslt");
  EXPECT_FALSE(ops.empty());
  for (const std::string& op : ops) {
    int taken = 0;
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      SCOPED_TRACE(call.text);
      if (!supports_of_cuda(*context, op, call.operands, call.attributes, "cublaslt")) continue;
      const std::vector<Tensor> came = by_cuda(*context, op, call.operands, call.attributes, "cublaslt");
      const std::vector<Tensor> wanted = meaning_of(*context, op, call.operands, call.attributes);
      EXPECT_EQ(difference(wanted[0], came[0], context->ops.at(op).tolerance(came[0].meta.dtype)), "") << op;
      ++taken;
    }
    EXPECT_GT(taken, 0) << op << " takes none of the samples";
  }
}

std::string refusal(const Context& context, Meta x, Meta weight, std::optional<Meta> bias = std::nullopt) {
  const std::vector<std::optional<Meta>> operands = {x, weight, bias};
  Shape shape = x.shape;
  shape.back() = weight.shape[0];
  const Meta result = Meta::tensor(x.dtype, shape);
  const Attributes none;
  const Verdict verdict = context.kernel_for("linear", "cublaslt").supports({operands, {&result, 1}, none, {1, 4096}});
  return verdict ? "" : verdict.reason();
}

TEST(EveryCublasltKernel, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto bf16 = [](Shape shape) { return Meta::tensor(DType::bf16, std::move(shape)); };
  EXPECT_EQ(refusal(*context, bf16({4, 64}), bf16({48, 64})), "");
  EXPECT_EQ(refusal(*context, Meta::strided(DType::bf16, {4, 64}, {96, 1}), bf16({48, 64}), bf16({48})), "");
  EXPECT_EQ(refusal(*context, bf16({4, 64}), Meta::tensor(DType::q4_1, {48, 64})),
            "takes a weight of the dtype of x: bf16[4, 64], not q4_1[48, 64]");
  EXPECT_NE(refusal(*context, Meta::tensor(DType::f64, {4, 64}), bf16({48, 64})).find("bf16, f16 and f32"),
            std::string::npos);
  EXPECT_NE(refusal(*context, Meta::strided(DType::bf16, {4, 64}, {1, 4}), bf16({48, 64})).find("side by side"),
            std::string::npos);
  EXPECT_NE(refusal(*context, bf16({4, 64}), bf16({48, 64}), Meta::tensor(DType::f32, {48})).find("a bias"),
            std::string::npos);
  Meta packed = bf16({48, 64});
  packed.packed = "somebody's";
  EXPECT_NE(refusal(*context, bf16({4, 64}), packed).find("plain weights"), std::string::npos);
}

// Before the host's own products, which cannot read a GPU's memory.
TEST(EveryCublasltKernel, IsTheFirstThatIsAsked) {
  const auto context = cuda_context();
  const std::vector<std::optional<Meta>> operands = {Meta::tensor(DType::bf16, {Dim::symbol("s0"), 64}),
                                                     Meta::tensor(DType::bf16, {48, 64}), std::nullopt};
  const Meta result = Meta::tensor(DType::bf16, {Dim::symbol("s0"), 48});
  const Attributes none;
  const KernelRequest request{operands, {&result, 1}, none, {1, 4096}};
  EXPECT_EQ(select_kernel(context->kernels, context->priorities, "linear", request, false).provider, "cublaslt");
  // Its sums depend on the count of rows.
  EXPECT_EQ(select_kernel(context->kernels, context->priorities, "linear", request, true).provider, "cpu");
}

}  // namespace weft::every_cublaslt_kernel_test
