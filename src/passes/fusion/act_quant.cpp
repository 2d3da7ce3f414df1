// A gated activation and the quantization of what it gives become one op. One pattern for each pair of which there is a
// fused op: `silu_and_mul` and `per_token_group_quant_int8` are `silu_and_mul_per_token_group_quant_int8`.

#include "passes/pattern_pass.h"

PATTERNS(act_quant) {
  for (const std::string activation : {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
    const std::string quantization = "per_token_group_quant_int8";
    const std::string fused = activation + "_" + quantization;
    PatternDefinition pattern(fused, patterns.ops());
    const Value x = pattern.value("x");
    const std::vector<std::pair<std::string, Attribute>> attributes = {{"group_size", pattern.integer("group_size")},
                                                                       {"eps", pattern.real("eps").value},
                                                                       {"rounding", pattern.word("rounding")}};
    pattern.before([&] { return call(quantization.c_str(), {call(activation.c_str(), {x}, {})[0]}, attributes); });
    pattern.after([&] { return call(fused.c_str(), {x}, attributes); });
    patterns.add(std::move(pattern));
  }
}
