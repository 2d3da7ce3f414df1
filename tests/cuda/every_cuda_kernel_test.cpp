// Every CUDA kernel (if there are two forms, the one with reference math) compared with the meaning of its op, bit for
// bit unless the op leaves the order of its sums free: on the op's samples, on rows of more columns than a block takes
// at once, and on the calls that vLLM recorded.

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "tests/cuda/cuda_context.h"
#include "tests/cuda/recorded_calls.h"
#include "tests/thrown_message.h"

namespace weft::every_cuda_kernel_test {

std::vector<std::string> ops_of_cuda(const Context& context) { return ops_of_provider(context, "cuda"); }

// Ops whose order of sums is free; the tests use their own tolerance.
const std::set<std::string> kFreeOrder = {"attention"};

// Whether the kernel takes the call; compares if so.
bool agrees(const Context& context, const std::string& op, const SampleCall& call) {
  SCOPED_TRACE(call.text);
  if (!supports_of_cuda(context, op, call.operands, call.attributes)) return false;
  const std::vector<Tensor> came = by_cuda(context, op, call.operands, call.attributes);
  const std::vector<Tensor> wanted = meaning_of(context, op, call.operands, call.attributes);
  if (!kFreeOrder.contains(op)) {
    EXPECT_EQ(difference_of_results(wanted, came), "") << op;
    return true;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(difference(wanted[i], came[i], context.ops.at(op).tolerance(came[i].meta.dtype)), "") << op;
  return true;
}

TEST(EveryCudaKernel, AgreesWithTheMeaningOnEverySampleItTakes) {
  const auto context = cuda_context();
  const std::vector<std::string> ops = ops_of_cuda(*context);
  EXPECT_GE(ops.size(), 14u);
  for (const std::string& op : ops) {
    int taken = 0;
    for (const SampleCall& call : sample_calls(context->ops.at(op))) taken += agrees(*context, op, call);
    EXPECT_GT(taken, 0) << op << " takes none of the samples";
  }
}

// 256 threads take 2048 columns of bf16 and 1024 of f32 at once.
TEST(EveryCudaKernel, AgreesOnRowsOfManyTurnsAndInEveryForm) {
  const auto context = cuda_context();
  for (const std::string& op : ops_of_cuda(*context)) {
    if (op.find("rms_norm") == std::string::npos) continue;
    int taken = 0;
    for (const std::int64_t columns : {64, 576, 1024, 2304, 4224}) {
      for (Sample sample : context->ops.at(op).samples) {
        const std::int64_t width = sample.tensors[0].shape.back();
        for (SampleTensor& tensor : sample.tensors)
          if (!tensor.shape.empty() && tensor.shape.back() == width) tensor.shape.back() = columns;
        for (auto& [name, value] : sample.attributes) {
          if (name == "group_size") value = Attribute(std::int64_t{64});
          if (name == "variance_size" && !value.is_none()) value = Attribute(std::int64_t{40});
        }
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          const SampleCall call = make_sample_call(context->ops.at(op), sample, dtype);
          taken += agrees(*context, op, call);
        }
      }
    }
    EXPECT_GE(taken, 30) << op << " takes too few of the forms";
  }
}

// The row's largest magnitude is that of its numbers; nothing of a row of zeros or of an infinite one can be divided.
TEST(EveryCudaKernel, QuantizesTokensWithoutNumbersAsTheirMeaningDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const auto context = cuda_context();
  int taken = 0;
  for (const std::string& op : ops_of_cuda(*context)) {
    if (op.find("dynamic_per_token") == std::string::npos) continue;
    SampleCall call = make_sample_call(context->ops.at(op), context->ops.at(op).samples[0], DType::f32);
    Tensor& x = call.operands[0];
    const std::int64_t columns = x.meta.shape.back().number();
    auto* numbers = reinterpret_cast<float*>(x.data());
    std::fill_n(numbers, columns, 0.0f);
    numbers[columns + 3] = kNan;
    numbers[2 * columns + 5] = -kInfinity;
    std::fill_n(numbers + 3 * columns, columns, kNan);
    numbers[4 * columns] = 1e-44f;
    taken += agrees(*context, op, call);
  }
  EXPECT_EQ(taken, 6);
}

TEST(EveryCudaKernel, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto refusal = [&](const char* op, Meta x, const NamedAttributes& given,
                           const char* provider = "") -> std::string {
    const Tensor tensor = Tensor::empty(std::move(x));
    try {
      by_cuda(*context, op, {tensor}, complete_attributes(context->ops.at(op).schema, given), provider);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto bf16 = [](Shape shape) { return Meta::tensor(DType::bf16, std::move(shape)); };
  const char* groups = "per_token_group_quant_fp8";
  EXPECT_NE(refusal(groups, bf16({4, 80}), {{"group_size", 16}}).find("groups have 16 columns"), std::string::npos);
  EXPECT_NE(refusal(groups, bf16({2, 4, 64}), {{"group_size", 64}}).find("contiguous matrices"), std::string::npos);
  EXPECT_NE(refusal("silu_and_mul_per_token_group_quant_int8", bf16({4, 128}),
                    {{"group_size", 64}, {"rounding", EnumWord{"toward_zero"}}}, "cuda_tree")
                .find("rounds toward_zero"),
            std::string::npos);
}

// Runs a kernel on the first sample that it takes, with what `change` makes of its operands and results.
using Change = std::function<void(std::vector<TensorView>& operands, std::vector<TensorView>& results)>;
std::string refusal_of_run(const Context& context, const std::string& op, const Change& change) {
  for (const SampleCall& call : sample_calls(context.ops.at(op))) {
    if (!supports_of_cuda(context, op, call.operands, call.attributes)) continue;
    std::vector<Tensor> results = by_cuda(context, op, call.operands, call.attributes);
    std::vector<TensorView> from, to;
    for (const Tensor& operand : call.operands) from.push_back(operand.view());
    for (const Tensor& result : results) to.push_back(result.view());
    change(from, to);
    const Kernel& kernel = context.kernel_for(op, provider_of_form(context, op, cuda::Mathematics::reference));
    return message_of([&] { kernel.run({from, to, call.attributes, {}, *context.threads}); });
  }
  return "takes none of the samples";
}

TEST(EveryCudaKernel, RefusesSidesThatItsArgumentsDoNotHold) {
  const auto context = cuda_context();
  for (const std::string& op : ops_of_cuda(*context)) {
    // The number of gathered rows is free.
    const bool has_x = context->ops.at(op).schema.parameters[0].name == "x" && op != "index_select";
    if (op.find("quant_int8") != std::string::npos || !has_x) continue;
    for (const int side : {0, 1}) {
      const std::string refusal = refusal_of_run(*context, op, [&](auto& operands, auto&) {
        operands[0].size[side] = (std::int64_t{1} << 32) + operands[0].size[side];
      });
      EXPECT_NE(refusal.find("x must have 1 to 2^31 - 1 rows and columns, but has"), std::string::npos)
          << op << ": " << refusal;
    }
  }
  const Attributes attributes = complete_attributes(context->ops.at("rms_norm").schema, {{"epsilon", 1e-5}});
  const std::vector<std::optional<Meta>> operands = {Meta::tensor(DType::bf16, {2, std::int64_t{1} << 32}), {}};
  const std::vector<Meta> results = {*operands[0]};
  EXPECT_NE(context->kernel_for("rms_norm", "cuda")
                .supports({operands, results, attributes, {1, 4096}})
                .reason()
                .find("sides below 2^31"),
            std::string::npos);
}

TEST(EveryCudaKernel, NamesWhatIsMisaligned) {
  const auto context = cuda_context();
  const char* op = "fused_add_rms_norm";
  const auto refusal = [&](const Change& change) { return refusal_of_run(*context, op, change); };
  EXPECT_NE(refusal([](auto& from, auto&) { from[1].data += 4; }).find("x_residual must be at"), std::string::npos);
  EXPECT_NE(refusal([](auto& from, auto&) { from[2].data += 4; }).find("weight must be at"), std::string::npos);
  EXPECT_NE(refusal([](auto&, auto& to) { to[0].data += 4; }).find("the result must be at"), std::string::npos);
  EXPECT_NE(refusal([](auto&, auto& to) { to[1].data += 4; }).find("the sum of x and x_residual must be at"),
            std::string::npos);
}

// Nothing is copied for the kernel.
TEST(EveryCudaKernel, ReadsNoWiderVectorsThanItSays) {
  const auto context = cuda_context();
  for (const std::string& op : ops_of_cuda(*context)) {
    const int vector_bytes = context->kernel_for(op, "cuda").vector_bytes;
    int taken = 0;
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
      SCOPED_TRACE(op + " " + call.text);
      std::vector<Tensor> operands;
      for (const Tensor& operand : call.operands) operands.push_back(moved_by(operand, vector_bytes));
      for (const cuda::Mathematics mathematics : cuda::kMathematics)
        EXPECT_NO_THROW(by_cuda(*context, op, operands, call.attributes, provider_of_form(*context, op, mathematics)));
      ++taken;
    }
    EXPECT_GT(taken, 0) << op;
  }
}

TEST(EveryCudaKernel, GivesWhatVllmRecordedInEachForm) {
  for (const cuda::Mathematics mathematics : cuda::kMathematics)
    EXPECT_GE(expect_recorded_calls(*cuda_context(), mathematics), 460) << ending_of(mathematics);
}

}  // namespace weft::every_cuda_kernel_test
