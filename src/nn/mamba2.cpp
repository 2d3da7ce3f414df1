#include "nn/mamba2.h"

#include <cmath>
#include <utility>

#include "nn/attention.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/llama.h"
#include "nn/recurrent_parts.h"
#include "nn/times.h"
#include "ops/add.h"
#include "ops/clamp.h"
#include "ops/concat.h"
#include "ops/linear_attention.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/softplus.h"

namespace weft::nn {
namespace {

// The parts of the projection of x.
struct MambaInputs {
  Value gate;   // [s0, d]
  Value mixed;  // the values, keys and queries, in this order
  Value steps;  // f32[s0, heads]
};

MambaInputs mamba_inputs(Builder& builder, const Value& x, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const MambaFactors& factors = c.factors;
  const std::int64_t width = c.values_width(), keys = c.keys_width(), heads = c.value_heads;
  const Value product = linear(builder, times(x, factors.input), "ssm_in", layer);
  const auto part = [&](std::int64_t first, std::int64_t count) { return slice(product, -1, first, first + count); };
  MambaInputs inputs;
  inputs.gate = times(part(0, width), factors.gate);
  if (factors.value == 1 && factors.key == 1 && factors.query == 1) {
    inputs.mixed = part(width, width + 2 * keys);
  } else {
    inputs.mixed = concat({times(part(width, width), factors.value), times(part(2 * width, keys), factors.key),
                           times(part(2 * width + keys, keys), factors.query)},
                          -1);
  }
  inputs.steps = in_dtype(times(part(2 * width + 2 * keys, heads), factors.step), DType::f32);
  return inputs;
}

// How far each head goes, from what is projected: f32[s0, heads].
Value bounded_steps(Builder& builder, const Value& projected, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const Value steps = softplus(add(projected, vector_of(builder, "ssm_dt", layer)));
  const bool has_most = std::isfinite(c.largest_step);
  if (c.least_step == 0 && !has_most) return steps;
  return clamp(steps, c.least_step, has_most ? std::optional(c.largest_step) : std::nullopt);
}

// y [s0, d] in f32, normalized by group.
Value normalized_groups(Builder& builder, const Value& y, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const std::int64_t width = c.values_width() / c.key_heads;
  const Value normalized = rms_norm(by_heads(y, c.key_heads, width), {}, builder.facts.config.norm_eps);
  const Value weight = reshape(vector_of(builder, "ssm_norm", layer), {c.key_heads, width});
  return reshape(mul(normalized, weight), {y.dim(0), y.dim(1)});
}

// y and the gates [s0, d], in f32.
Value gated_and_normalized(Builder& builder, const Value& y, const Value& gate, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const Value opened = silu(gate);
  if (!c.has_norm) return mul(y, opened);
  return c.norms_before_gate ? mul(normalized_groups(builder, y, layer), opened)
                             : normalized_groups(builder, mul(y, opened), layer);
}

}  // namespace

Value mamba2_mixer(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const std::int64_t width = c.values_width(), keys = c.keys_width(), heads = c.value_heads;
  const MambaInputs inputs = mamba_inputs(builder, x, layer);
  const Value mixed = silu(convolved(builder, step, inputs.mixed, "ssm_conv1d", layer));
  const Value value = by_heads(slice(mixed, -1, 0, width), heads, c.value_dim);
  const Value key = by_heads(slice(mixed, -1, width, width + keys), c.key_heads, c.key_dim);
  const Value query = by_heads(slice(mixed, -1, width + keys, width + 2 * keys), c.key_heads, c.key_dim);
  const Value steps = bounded_steps(builder, inputs.steps, layer);
  // GGUF files have a vector of heads as [heads, 1].
  const Value log_decay = mul(steps, reshape(vector_of(builder, "ssm_a", layer), {heads}));
  Value& states = step.pages_of("state", layer);
  auto [found, updated] = linear_attention(maybe_inplace, query, key, value, log_decay, steps, states, step.batch,
                                           step.slots, 1.0, /*delta=*/false);
  states = std::move(updated);
  const Value passed = mul(in_dtype(value, DType::f32), reshape(vector_of(builder, "ssm_d", layer), {heads, 1}));
  const Value y = reshape(add(in_dtype(found, DType::f32), passed), {x.dim(0), width});
  const Value result = gated_and_normalized(builder, y, in_dtype(inputs.gate, DType::f32), layer);
  return times(linear(builder, in_dtype(result, x.dtype()), "ssm_out", layer), c.factors.output);
}

Values mamba2_forward(Builder& builder) {
  return llama_forward_with(builder, [](Builder& b, DecoderStep& step, const Value& x, int layer) {
    return b.facts.config.recurs(layer) ? mamba2_mixer(b, step, x, layer) : self_attention(b, step, x, layer);
  });
}

namespace {

using Extents = std::vector<std::int64_t>;
using ShapeRule = Extents (*)(const ModelConfig& config, int layer);

template <Extents (*extents)(const ModelConfig&)>
Extents of_mamba(const ModelConfig& c, int layer) {
  return has_recurrent_kind(c, layer, RecurrentKind::mamba2) ? extents(c) : Extents();
}
// The same, if the config has what a switch of it says.
template <bool RecurrentConfig::*has, Extents (*extents)(const ModelConfig&)>
Extents of_mamba_if(const ModelConfig& c, int layer) {
  return c.recurrent && (*c.recurrent).*has ? of_mamba<extents>(c, layer) : Extents();
}

std::int64_t projected_width(const ModelConfig& c) {
  return c.recurrent->values_width() + c.convolution_channels() + c.recurrent->value_heads;
}
Extents projected_rows(const ModelConfig& c) { return {projected_width(c), c.hidden_size}; }
Extents per_projected_row(const ModelConfig& c) { return {projected_width(c)}; }
Extents per_channel(const ModelConfig& c) { return {c.convolution_channels()}; }
Extents per_mamba_head(const ModelConfig& c) { return {c.recurrent->value_heads}; }
Extents column_of_heads(const ModelConfig& c) {
  return c.format == CheckpointFormat::gguf ? Extents{c.recurrent->value_heads, 1} : per_mamba_head(c);
}
Extents per_value_of_groups(const ModelConfig& c) {
  const std::int64_t width = c.recurrent->values_width(), groups = c.recurrent->key_heads;
  return c.format == CheckpointFormat::gguf ? Extents{groups, width / groups} : Extents{width};
}
Extents mamba_output_rows(const ModelConfig& c) { return {c.hidden_size, c.recurrent->values_width()}; }
Extents per_mamba_output_row(const ModelConfig& c) { return {c.hidden_size}; }

}  // namespace

void add_mamba2(WeightTable& weights, const std::string& module) {
  const auto add = [&](const char* name, const char* in_gguf, const char* in_folder, ShapeRule shape) -> ModelWeight& {
    weights.push_back({name, std::string("blk.{}.") + in_gguf, module + in_folder, shape});
    return weights.back();
  };
  using Recurrent = RecurrentConfig;
  add("ssm_in", "ssm_in.weight", "in_proj.weight", of_mamba<projected_rows>);
  add("ssm_in.bias", "ssm_in.bias", "in_proj.bias", of_mamba_if<&Recurrent::has_projection_bias, per_projected_row>);
  add("ssm_conv1d", "ssm_conv1d.weight", "conv1d.weight", of_mamba<shape_of_taps>);
  add("ssm_conv1d.bias", "ssm_conv1d.bias", "conv1d.bias", of_mamba_if<&Recurrent::has_convolution_bias, per_channel>);
  add("ssm_dt", "ssm_dt.bias", "dt_bias", of_mamba<per_mamba_head>).is_exact = true;
  add("ssm_a", "ssm_a", "A_log", of_mamba<column_of_heads>).logarithm_in = {CheckpointFormat::hugging_face};
  add("ssm_d", "ssm_d", "D", of_mamba<column_of_heads>).is_exact = true;
  add("ssm_norm", "ssm_norm.weight", "norm.weight", of_mamba_if<&Recurrent::has_norm, per_value_of_groups>).is_exact =
      true;
  add("ssm_out", "ssm_out.weight", "out_proj.weight", of_mamba<mamba_output_rows>);
  add("ssm_out.bias", "ssm_out.bias", "out_proj.bias", of_mamba_if<&Recurrent::has_output_bias, per_mamba_output_row>);
}

WeightTable mamba2_decoder_weights() {
  WeightTable weights = decoder_weights();
  const std::string layer = "model.layers.{}.", feed_forward = layer + "feed_forward.";
  rename(weights, {{"ffn_norm", "", layer + "pre_ff_layernorm"},
                   {"ffn_gate", "", feed_forward + "gate_proj"},
                   {"ffn_up", "", feed_forward + "up_proj"},
                   {"ffn_down", "", feed_forward + "down_proj"},
                   {"output_norm", "", "model.final_layernorm"}});
  add_mamba2(weights);
  return weights;
}

}  // namespace weft::nn
