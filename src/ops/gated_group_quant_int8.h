#pragma once

// Defines <gate>_per_token_group_quant_int8 for each gate: per_token_group_quant_int8 of the gate's result.

#include <fmt/core.h>

#include "base/error.h"
#include "ops/gated.h"
#include "ops/per_token_group_quant_int8.h"

namespace weft {

inline std::pair<Value, Value> call_gated_group_quant_int8(CallSite site, Literal op, const Value& x,
                                                           std::int64_t group_size, Scalar eps,
                                                           std::string_view rounding) {
  return call(site, op, {x}, int8_group_attributes(group_size, eps, rounding));
}

inline void define_gated_group_quant_int8(OpDefinition& op, const char* name, UnaryFunction gate,
                                          std::pair<Value, Value> (*function)(const Value&, std::int64_t, Scalar,
                                                                              std::string_view, CallSite)) {
  const std::string schema =
      fmt::format("{}(Tensor x, int group_size, float eps=1e-10, str rounding=nearest) -> (Tensor, Tensor)", name);
  op.schema(schema.c_str()).function(function);
  op.checks([name](const OpRequest& request) {
    check_gated(request, name);
    check_int8_groups(request, name, request.operand(0).shape.back().number() / 2);
  });
  op.means([gate](Evaluator&, const Values& v, const Attributes& a) {
    const auto [codes, scale] = quantized_int8_groups(gate(v[0], CallSite::current()), a);
    return Values{codes, scale};
  });
  op.sample({{"x", {5, 192}}}, {{"group_size", 32}});
  op.sample({{"x", {1, 3072}}}, {{"group_size", 32}});
  op.sample({{"x", {3, 300}}}, {{"group_size", 50}, {"rounding", EnumWord{"toward_zero"}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}

}  // namespace weft
