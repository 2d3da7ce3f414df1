#include "tests/cuda/recorded_calls.h"

#include <gtest/gtest.h>

#include "tests/cuda/cuda_context.h"
#include "tests/recorded_family.h"

namespace weft {

int expect_recorded_calls(Context& context, cuda::Mathematics mathematics) {
  // Of this form: calls that it does not support go to others.
  const auto runs = std::make_shared<int>(0);
  for (const std::string& op : ops_of_provider(context, "cuda")) {
    const std::string provider = provider_of_form(context, op, mathematics);
    context.priorities.set(op, {provider});
    auto& kernel = const_cast<Kernel&>(context.kernel_for(op, provider));
    kernel.run = [runs, run = kernel.run](const KernelCall& call) {
      ++*runs;
      run(call);
    };
  }
  int passed = 0;
  for (const char* name : {"fused", "quant_kernels", "ir_ops"}) {
    const RecordedFamily family(WEFT_TEST_DATA "/ops", name);
    for (const auto& entry : family.cases()) {
      const std::string op = entry.at("op");
      if (op == "gelu_and_mul_sparse" || op == "gemma_rms_norm") continue;
      const RecordedCall call = family.call_of(entry);
      const int runs_before = *runs;
      EXPECT_EQ(family.problem_of(entry, call, run_recorded(call, context, "cuda")).text, "") << call.name;
      passed += *runs > runs_before;
    }
  }
  return passed;
}

}  // namespace weft
