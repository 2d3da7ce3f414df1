#include "nn/feed_forward.h"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/experts.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/clamp.h"
#include "ops/concat.h"
#include "ops/gelu.h"
#include "ops/gelu_and_mul.h"
#include "ops/gelu_fast.h"
#include "ops/gelu_tanh.h"
#include "ops/gelu_tanh_and_mul.h"
#include "ops/mean.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/quick_gelu.h"
#include "ops/relu2.h"
#include "ops/silu.h"
#include "ops/silu_and_mul.h"
#include "ops/slice.h"
#include "ops/sqrt.h"
#include "ops/sub.h"

namespace weft::nn {
namespace {

struct Activation {
  const char* name;
  UnaryFunction function;
};
Value relu(const Value& x, CallSite site) { return clamp(x, 0.0, std::nullopt, site); }
constexpr Activation kGates[] = {{"silu", silu_and_mul},
                                 {"swish", silu_and_mul},
                                 {"gelu_pytorch_tanh", gelu_tanh_and_mul},
                                 {"gelu_new", gelu_tanh_and_mul},
                                 {"gelu", gelu_and_mul}};
constexpr Activation kActivations[] = {{"gelu_pytorch_tanh", gelu_tanh},
                                       {"gelu_new", gelu_tanh},
                                       {"gelu", gelu},
                                       {"gelu_fast", gelu_fast},
                                       {"quick_gelu", quick_gelu},
                                       {"relu", relu},
                                       {"relu2", relu2},
                                       {"silu", silu},
                                       {"swish", silu}};

// hidden_activation, a newer key, has precedence.
const std::string& activation_of(const ModelConfig& c) {
  return c.hidden_activation.empty() ? c.hidden_act : c.hidden_activation;
}

const Activation* find(std::span<const Activation> known, const ModelConfig& c) {
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Activation& one) { return one.name == activation_of(c); });
  return found == known.end() ? nullptr : &*found;
}

void check(std::span<const Activation> known, const ModelConfig& c) {
  std::vector<std::string_view> names;
  for (const Activation& one : known) names.emplace_back(one.name);
  USER_CHECK(find(known, c) != nullptr, "[{}] {} must be one of {}, but is {}", c.architecture,
             c.hidden_activation.empty() ? c.activation_key : "hidden_activation", fmt::join(names, ", "),
             quote(activation_of(c)));
}

// What of each gate is above the mean of its row by more than `cut` standard deviations of the row, in f32. This is
// gelu_and_mul_sparse without its sums in f64, for which devices have no kernels.
Value above_cut(const Value& gate, double cut) {
  const Value wide = in_dtype(gate, DType::f32);
  const Value average = mean(wide);
  const Value centred = sub(wide, average);
  const Value deviation = sqrt(mean(mul(centred, centred)));
  const Value passed = clamp(sub(wide, add(average, mul_scalar(deviation, cut))), 0.0, std::nullopt);
  return in_dtype(passed, gate.dtype());
}

GateFunction gate_function(UnaryFunction gate) {
  return [gate](const Value& gate_up) { return gate(gate_up, CallSite::current()); };
}

// The same with a factor of the gate.
GateFunction scaled_gate_function(UnaryFunction gate, double factor) {
  return [=](const Value& gate_up) {
    const std::int64_t width = gate_up.dim(-1).number() / 2;
    const Value scaled = mul_scalar(slice(gate_up, -1, 0, width), factor);
    return gate(concat({scaled, slice(gate_up, -1, width, 2 * width)}, -1), CallSite::current());
  };
}

Value dense_feed_forward(Builder& builder, const Value& x, const GateFunction& gate, int layer) {
  const Value gate_up = builder.has("ffn_gate_up", layer)
                            ? linear(builder, x, "ffn_gate_up", layer)
                            : merged_linear(builder, x, "gate_up", {"ffn_gate", "ffn_up"}, layer);
  return linear(builder, gate(gate_up), "ffn_down", layer);
}

Value combined_feed_forward(Builder& builder, const Value& x, const GateFunction& gate, int layer) {
  return builder.facts.config.routes(layer) ? routed_feed_forward(builder, x, gate, layer)
                                            : dense_feed_forward(builder, x, gate, layer);
}

}  // namespace

Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer) {
  return combined_feed_forward(builder, x, gate_function(gate), layer);
}

Value dense_feed_forward(Builder& builder, const Value& x, int layer) {
  return dense_feed_forward(builder, x, gate_function(find(kGates, builder.facts.config)->function), layer);
}

Value expert_feed_forward(Builder& builder, const Value& x, const Value& router_input, int layer) {
  const GateFunction gate = gate_function(find(kGates, builder.facts.config)->function);
  return routed_feed_forward(builder, x, router_input, gate, layer);
}

Value gated_feed_forward(Builder& builder, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::optional<double> cut = c.gate_cut_of(layer);
  if (!cut) {
    const UnaryFunction gate = find(kGates, c)->function;
    return c.gate_scale == 1 ? gated_feed_forward(builder, x, gate, layer)
                             : combined_feed_forward(builder, x, scaled_gate_function(gate, c.gate_scale), layer);
  }
  const UnaryFunction activation = find(kActivations, c)->function;
  const auto sparse = [&](const Value& gate_up) {
    const std::int64_t width = gate_up.dim(-1).number() / 2;
    const Value passed = above_cut(slice(gate_up, -1, 0, width), *cut);
    return mul(activation(passed, CallSite::current()), slice(gate_up, -1, width, 2 * width));
  };
  return combined_feed_forward(builder, x, sparse, layer);
}

Value gated_feed_forward_with_norm(Builder& builder, const Value& x, int layer) {
  const UnaryFunction activation = find(kActivations, builder.facts.config)->function;
  const Value gate_up = merged_linear(builder, x, "gate_up", {"ffn_gate", "ffn_up"}, layer);
  const std::int64_t width = gate_up.dim(-1).number() / 2;
  const Value gate = activation(slice(gate_up, -1, 0, width), CallSite::current());
  const Value passed = mul(gate, slice(gate_up, -1, width, 2 * width));
  return linear(builder, norm(builder, passed, "ffn_sub_norm", layer), "ffn_down", layer);
}

Value plain_feed_forward(Builder& builder, const Value& x, int layer) {
  const UnaryFunction activation = find(kActivations, builder.facts.config)->function;
  if (builder.facts.config.routes(layer)) return routed_feed_forward(builder, x, gate_function(activation), layer);
  return linear(builder, activation(linear(builder, x, "ffn_up", layer), CallSite::current()), "ffn_down", layer);
}

void check_gated_activation(const ModelConfig& config) { check(kGates, config); }
void check_plain_activation(const ModelConfig& config) { check(kActivations, config); }

}  // namespace weft::nn
