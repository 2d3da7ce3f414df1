// Fuses a residual sum and its normalization; the sum is also a result, the residual stream.

#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/rms_norm.h"
#include "passes/pattern_pass.h"

PATTERNS(add_rms_norm) {
  PatternDefinition pattern("add_rms_norm", patterns.ops());
  const Value x = pattern.value("x"), residual = pattern.value("x_residual"), weight = pattern.value("weight");
  const Attribute epsilon = pattern.attribute("epsilon", ParameterType::real),
                  variance_size = pattern.integer("variance_size");
  pattern.before([&] {
    const Value sum = add(x, residual);
    return Values{call("rms_norm", {sum, weight}, {{"epsilon", epsilon}, {"variance_size", variance_size}})[0], sum};
  });
  pattern.after([&] {
    return call("fused_add_rms_norm", {x, residual, weight},
                {{"epsilon", epsilon}, {"variance_size", variance_size}, {"intermediate", EnumWord{"input_dtype"}}});
  });
  patterns.add(std::move(pattern));
}
