#include "nn/feed_forward.h"

#include "nn/linear.h"

namespace weft::nn {

Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer) {
  const std::string suffix = "." + std::to_string(layer);
  const Value gate_up =
      merged_linear(builder, x, "gate_up" + suffix, {builder.key("ffn_gate", layer), builder.key("ffn_up", layer)});
  return linear(builder, gate(gate_up, CallSite::current()), "ffn_down" + suffix, {builder.key("ffn_down", layer)});
}

}  // namespace weft::nn
