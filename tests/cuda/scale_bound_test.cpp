// scale_ub of the ops that quantize fp8 by group, after any first op: the processor's kernels and every CUDA kernel
// that has them give the bits of the meaning, with a bound that acts, with one that does not, and with NaN.

#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "tensor/convert.h"
#include "tests/cuda/cuda_context.h"
#include "tests/test_context.h"

namespace weft::scale_bound_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr const char* kGroups = "per_token_group_quant_fp8";
constexpr const char* kOps[] = {kGroups,
                                "silu_and_mul_per_token_group_quant_fp8",
                                "gelu_and_mul_per_token_group_quant_fp8",
                                "gelu_tanh_and_mul_per_token_group_quant_fp8",
                                "rms_norm_per_token_group_quant_fp8",
                                "fused_add_rms_norm_per_token_group_quant_fp8"};

// A bound near the scales of values of about 1, one near their magnitudes, and extreme ones.
std::vector<float> bounds_of(const std::string& what) {
  return {what == "scale" ? 0.004f : 1.8f, 1e30f, 1e-30f, 0, -1, kInfinity, kNan};
}

// A call of the op with the bound, five rows of four groups; with `is_odd` two elements of x are not finite.
SampleCall call_of(const Op& op, DType dtype, const std::string& what, float bound, bool is_odd) {
  Sample sample = op.samples.front();
  const std::int64_t columns = op.name.find("_and_mul") != std::string::npos ? 512 : 256;
  for (SampleTensor& tensor : sample.tensors)
    tensor.shape =
        tensor.shape.size() == 1 ? std::vector<std::int64_t>{columns} : std::vector<std::int64_t>{5, columns};
  sample.tensors.push_back({"scale_ub", {1}, DType::f32, Fill::positive});
  std::erase_if(sample.attributes, [](const auto& one) { return one.first == "group_size"; });
  sample.attributes.emplace_back("group_size", 64);
  sample.attributes.emplace_back("scale_ub_of", EnumWord{what});
  SampleCall call = make_sample_call(op, sample, dtype);
  for (std::size_t i = 0; i < op.schema.tensor_count(); ++i)
    if (op.schema.parameters[i].name == "scale_ub") *call.operands[i].as<float>() = bound;
  if (is_odd) {
    store_float(dtype, call.operands[0].data(), 3, kNan);
    store_float(dtype, call.operands[0].data(), columns + 5, kInfinity);
  }
  return call;
}

template <class Check>
void for_each_call(const Context& context, Check check) {
  for (const char* name : kOps)
    for (const std::string what : {"magnitude", "scale"})
      for (const float bound : bounds_of(what))
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          const SampleCall call = call_of(context.ops.at(name), dtype, what, bound, dtype != DType::f16);
          SCOPED_TRACE(fmt::format("{} of {} held to {}", call.text, what, bound));
          check(name, call);
        }
}

TEST(ScaleBound, GivesTheMeaningsBitsByTheProcessorsKernels) {
  for (const std::string& features : cpu_features_to_try()) {
    const auto context = test_context(features);
    int calls = 0;
    for_each_call(*context, [&](const std::string& op, const SampleCall& call) {
      EXPECT_EQ(difference_of_results(meaning_of(*context, op, call.operands, call.attributes),
                                      by_cuda(*context, op, call.operands, call.attributes, "cpu")),
                "");
      ++calls;
    });
    EXPECT_EQ(calls, 6 * 2 * 7 * 3);
  }
}

TEST(ScaleBound, GivesTheMeaningsBitsByCudaKernels) {
  const auto context = cuda_context();
  std::map<std::string, int> calls;
  for_each_call(*context, [&](const std::string& op, const SampleCall& call) {
    const std::vector<Tensor> wanted = meaning_of(*context, op, call.operands, call.attributes);
    for (const std::string provider : {"cuda", "cuda_reference", "cuda_tree"}) {
      const bool has_meanings_bits = provider != "cuda" || op == kGroups;
      if (!has_meanings_bits || context->kernels.find(op, provider) == nullptr) continue;
      EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, op, call.operands, call.attributes, provider)), "")
          << provider;
      ++calls[provider];
    }
  });
  EXPECT_EQ(calls, (std::map<std::string, int>{{"cuda", 42}, {"cuda_reference", 3 * 42}, {"cuda_tree", 42}}));
}

}  // namespace weft::scale_bound_test
