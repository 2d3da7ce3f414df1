// Every op as its meaning with code generated for it, on all its samples and every width of vectors of the host.

#include <iostream>
#include <set>

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "tests/codegen/native_op.h"

namespace weft::native_ops_slow_test {

TEST(EveryNativeOp, GivesTheBitsOfItsMeaning) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  for (const std::string& features : vector_features_to_try()) {
    const auto context = native_context(features);
    std::set<std::string> whole, parts;
    for (const auto& [name, op] : context->ops.all()) {
      for (const SampleCall& call : sample_calls(op)) {
        if (!is_native_sample(op, call)) continue;
        SCOPED_TRACE(name + ": " + call.text);
        const NativeOutcome outcome = run_native_op(op, call, *context);
        if (outcome.functions > 0) (outcome.others == 0 ? whole : parts).insert(name);
      }
    }
    for (const char* name :
         {"silu", "gelu", "silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh", "gelu_tanh_and_mul", "rms_norm",
          "fused_add_rms_norm", "quick_gelu", "relu2", "per_token_group_quant_int8", "per_token_group_quant_fp8",
          "dynamic_per_token_scaled_int8_quant", "dynamic_per_token_scaled_fp8_quant", "static_scaled_fp8_quant",
          "silu_and_mul_per_token_group_quant_int8", "fused_add_rms_norm_per_token_group_quant_int8",
          "rms_norm_dynamic_per_token_scaled_fp8_quant"})
      EXPECT_EQ(whole.count(name), 1u) << name << " is no longer whole functions";
    std::string text;
    for (const std::string& name : whole) text += " " + name;
    std::cout << "count: " << whole.size() << " ops in functions alone:" << text << "\n";
    text.clear();
    for (const std::string& name : parts)
      if (whole.count(name) == 0) text += " " + name;
    std::cout << "count: in part:" << text << "\n";
  }
}

}  // namespace weft::native_ops_slow_test
