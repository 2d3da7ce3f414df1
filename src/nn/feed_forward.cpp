#include "nn/feed_forward.h"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/linear.h"
#include "ops/gelu.h"
#include "ops/gelu_and_mul.h"
#include "ops/gelu_tanh.h"
#include "ops/gelu_tanh_and_mul.h"
#include "ops/relu2.h"
#include "ops/silu.h"
#include "ops/silu_and_mul.h"

namespace weft::nn {
namespace {

struct Activation {
  const char* name;
  UnaryFunction function;
};
constexpr Activation kGates[] = {{"silu", silu_and_mul},
                                 {"gelu_pytorch_tanh", gelu_tanh_and_mul},
                                 {"gelu_new", gelu_tanh_and_mul},
                                 {"gelu", gelu_and_mul}};
constexpr Activation kActivations[] = {
    {"gelu_pytorch_tanh", gelu_tanh}, {"gelu_new", gelu_tanh}, {"gelu", gelu}, {"relu2", relu2}, {"silu", silu}};

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
             c.hidden_activation.empty() ? "hidden_act" : "hidden_activation", fmt::join(names, ", "),
             quote(activation_of(c)));
}

}  // namespace

Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer) {
  const Value gate_up = builder.has("ffn_gate_up", layer)
                            ? linear(builder, x, "ffn_gate_up", layer)
                            : merged_linear(builder, x, "gate_up", {"ffn_gate", "ffn_up"}, layer);
  return linear(builder, gate(gate_up, CallSite::current()), "ffn_down", layer);
}

Value gated_feed_forward(Builder& builder, const Value& x, int layer) {
  return gated_feed_forward(builder, x, find(kGates, builder.facts.config)->function, layer);
}

Value plain_feed_forward(Builder& builder, const Value& x, int layer) {
  const UnaryFunction activation = find(kActivations, builder.facts.config)->function;
  return linear(builder, activation(linear(builder, x, "ffn_up", layer), CallSite::current()), "ffn_down", layer);
}

void check_gated_activation(const ModelConfig& config) { check(kGates, config); }
void check_plain_activation(const ModelConfig& config) { check(kActivations, config); }

}  // namespace weft::nn
