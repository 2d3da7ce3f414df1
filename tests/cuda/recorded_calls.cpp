#include "tests/cuda/recorded_calls.h"

#include <cstdio>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cuda/cuda_context.h"
#include "tests/recorded_family.h"

namespace weft {

int expect_recorded_calls(Context& context, cuda::Mathematics mathematics) {
  std::map<std::string, int> runs;
  // Of this form: calls that it does not support go to others.
  const auto last = std::make_shared<std::string>();
  for (const std::string& op : ops_of_provider(context, "cuda")) {
    const std::string provider = provider_of_form(context, op, mathematics);
    context.priorities.set(op, {provider});
    auto& kernel = const_cast<Kernel&>(context.kernel_for(op, provider));
    kernel.run = [op, last, run = kernel.run](const KernelCall& call) {
      *last = op;
      run(call);
    };
  }
  const KnownDifferences differing = read_known_differences(WEFT_TEST_DATA "/../check_vectors_differing.txt");
  for (const char* name :
       {"activations", "fused", "ir_ops", "quant_fp8", "quant_int8", "quant_kernels", "quant_mx", "rope"}) {
    const RecordedFamily family(WEFT_TEST_DATA "/ops", name);
    const auto known = differing.find(name);
    for (const auto& entry : family.cases()) {
      // What the op's meaning does not give either.
      if (known != differing.end() && known->second.contains(entry.at("case"))) continue;
      last->clear();
      try {
        const RecordedCall call = family.call_of(entry);
        const std::vector<Tensor> came = run_recorded(call, context, "cuda");
        if (last->empty()) continue;  // others computed it
        EXPECT_EQ(family.problem_of(entry, call, came).text, "") << call.name;
        ++runs[*last];
      } catch (const NotKnownYet&) {
        EXPECT_TRUE(last->empty()) << *last;
      }
    }
  }
  int all = 0;
  std::string text;
  for (const auto& [op, count] : runs) {
    all += count;
    text += fmt::format(", {} {}", op, count);
  }
  std::printf("count: %d recorded calls with %s mathematics%s\n", all, cuda::ending_of(mathematics), text.c_str());
  return all;
}

}  // namespace weft
