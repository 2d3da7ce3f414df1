#include "tests/cuda/recorded_calls.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "compiler/run/eager.h"
#include "tests/cuda/cuda_context.h"
#include "tests/recorded_family.h"

namespace weft {
namespace {

// How many of the recorded calls take a kernel of the op, at least. A kernel that refuses them would leave them to
// others unseen.
const std::map<std::string, int> kLeastCalls = {
    {"dynamic_per_token_scaled_fp8_quant", 51},
    {"dynamic_per_token_scaled_int8_quant", 25},
    {"fused_add_rms_norm", 39},
    {"fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant", 5},
    {"fused_add_rms_norm_per_token_group_quant_fp8", 38},
    {"fused_add_rms_norm_static_scaled_fp8_quant", 5},
    {"per_token_group_quant_fp8", 167},
    {"per_token_group_quant_int8", 12},
    {"rms_norm", 39},
    {"rms_norm_dynamic_per_token_scaled_fp8_quant", 10},
    {"rms_norm_dynamic_per_token_scaled_int8_quant", 5},
    {"rms_norm_static_scaled_fp8_quant", 5},
    {"rotary_embedding", 22},
    {"silu_and_mul", 35},
    {"silu_and_mul_per_token_group_quant_fp8", 40},
    {"silu_and_mul_static_scaled_fp8_quant", 5},
};

}  // namespace

int expect_recorded_calls(Context& context, cuda::Mathematics mathematics) {
  std::map<std::string, int> runs;
  int all = 0;
  // Kernels of this form: calls that it does not support use others. A recorded call may use several kernels, e.g. one
  // that is compared with its parts.
  const auto called = std::make_shared<std::set<std::string>>();
  for (const std::string& op : ops_of_provider(context, "cuda")) {
    const std::string provider = provider_of_form(context, op, mathematics);
    context.priorities.set(op, {provider});
    auto& kernel = const_cast<Kernel&>(context.kernel_for(op, provider));
    kernel.run = [op, called, run = kernel.run](const KernelCall& call) {
      called->insert(op);
      run(call);
    };
  }
  EagerEvaluator home(context, kRecordedRange);
  const KnownDifferences differing = read_known_differences(WEFT_TEST_DATA "/../check_vectors_differing.txt");
  for (const char* name :
       {"activations", "fused", "ir_ops", "quant_fp8", "quant_int8", "quant_kernels", "quant_mx", "rope"}) {
    const RecordedFamily family(WEFT_TEST_DATA "/ops", name);
    const auto known = differing.find(name);
    for (const auto& entry : family.cases()) {
      // Results that the op's meaning does not have either.
      if (known != differing.end() && known->second.contains(entry.at("case"))) continue;
      called->clear();
      try {
        const RecordedCall call = family.call_of(entry);
        const std::vector<Tensor> came = run_recorded(call, home);
        if (called->empty()) continue;  // others computed it
        EXPECT_EQ(family.problem_of(entry, call, came).text, "") << call.name;
        for (const std::string& op : *called) ++runs[op];
        ++all;
      } catch (const NotKnownYet&) {
        EXPECT_TRUE(called->empty()) << *called->begin();
      }
    }
  }
  for (const auto& [op, least] : kLeastCalls)
    EXPECT_GE(runs[op], least) << op << " with " << cuda::ending_of(mathematics) << " mathematics";
  std::string text;
  for (const auto& [op, count] : runs) text += fmt::format(", {} {}", op, count);
  std::printf("count: %d recorded calls with %s mathematics%s\n", all, cuda::ending_of(mathematics), text.c_str());
  return all;
}

}  // namespace weft
