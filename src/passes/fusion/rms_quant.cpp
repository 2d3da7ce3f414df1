// A normalisation, with or without the residual sum before it, and the quantization of what it gives become one op.

#include "passes/pattern_pass.h"

PATTERNS(rms_quant) {
  const std::string quantization = "per_token_group_quant_int8";
  for (const bool has_residual : {true, false}) {
    const std::string norm = has_residual ? "fused_add_rms_norm" : "rms_norm";
    const std::string fused = norm + "_" + quantization;
    PatternDefinition pattern(fused, patterns.ops());
    Values inputs = {pattern.value("x")};
    if (has_residual) inputs.push_back(pattern.value("x_residual"));
    inputs.push_back(pattern.value("weight"));
    std::vector<std::pair<std::string, Attribute>> of_norm = {{"epsilon", pattern.real("epsilon").value},
                                                              {"variance_size", pattern.integer("variance_size")}};
    if (has_residual) of_norm.emplace_back("intermediate", pattern.word("intermediate"));
    const std::vector<std::pair<std::string, Attribute>> of_quantization = {
        {"group_size", pattern.integer("group_size")},
        {"eps", pattern.real("eps").value},
        {"rounding", pattern.word("rounding")}};
    pattern.before([&] {
      const Values normalised = call(norm.c_str(), inputs, of_norm);
      Values results = call(quantization.c_str(), {normalised[0]}, of_quantization);
      if (has_residual) results.push_back(normalised[1]);
      return results;
    });
    pattern.after([&] {
      std::vector<std::pair<std::string, Attribute>> all = of_norm;
      all.insert(all.end(), of_quantization.begin(), of_quantization.end());
      return call(fused.c_str(), inputs, all);
    });
    patterns.add(std::move(pattern));
  }
}
