#include "nn/recurrent.h"

#include <cmath>
#include <utility>

#include "nn/attention.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/llama.h"
#include "nn/norm.h"
#include "nn/recurrent_parts.h"
#include "ops/add.h"
#include "ops/concat.h"
#include "ops/linear_attention.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/softplus.h"

namespace weft::nn {
namespace {

// Each head divided by its length; the last factor of 1 / sqrt(width) is left to the caller.
Value normalized_heads(const Value& heads) {
  constexpr double kEpsilon = 1e-6;  // of the sum of squares
  return rms_norm(heads, {}, kEpsilon / static_cast<double>(heads.dim(-1).number()));
}

// The inputs of a gated delta net, all of them projections of x.
struct DeltaInputs {
  Value mixed;        // queries, keys and values of all heads, in this order
  Value gate;         // [s0, values]
  Value beta, alpha;  // [s0, value heads]
};

// The columns of the product are sorted by key head: its query, its key, its values, and the gates of these.
void take_joined(Builder& builder, const Value& x, int layer, DeltaInputs& inputs) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const Value product = linear(builder, x, "ssm_qkvz", layer);
  const std::int64_t values = c.values_width() / c.key_heads, keys = 2 * c.key_dim;
  const auto columns = [&](std::int64_t first, std::int64_t count) {
    return columns_of_groups(product, c.key_heads, first, count);
  };
  inputs.mixed = concat({columns(0, c.key_dim), columns(c.key_dim, c.key_dim), columns(keys, values)}, -1);
  inputs.gate = columns(keys + values, values);
}

DeltaInputs delta_inputs(Builder& builder, const Value& x, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const std::int64_t mixed = builder.facts.config.convolution_channels(), values = c.values_width();
  std::vector<std::string> weights;
  if (!c.is_joined) weights.insert(weights.end(), {"ssm_qkv", "ssm_gate"});
  if (!c.is_grouped) weights.insert(weights.end(), {"ssm_beta", "ssm_alpha"});
  const Values products = weights.empty() ? Values() : merged_products(builder, x, "ssm_inputs", weights, layer);
  DeltaInputs inputs;
  if (c.is_joined) {
    take_joined(builder, x, layer, inputs);
  } else {
    inputs.mixed = columns_of(products, 0, mixed);
    inputs.gate = columns_of(products, mixed, values);
  }
  if (c.is_grouped) {  // as above, the betas of a key head and then its alphas
    const Value product = linear(builder, x, "ssm_ba", layer);
    const std::int64_t shared = c.value_heads / c.key_heads;
    inputs.beta = columns_of_groups(product, c.key_heads, 0, shared);
    inputs.alpha = columns_of_groups(product, c.key_heads, shared, shared);
  } else {
    const std::int64_t before = c.is_joined ? 0 : mixed + values;
    inputs.beta = columns_of(products, before, c.value_heads);
    inputs.alpha = columns_of(products, before + c.value_heads, c.value_heads);
  }
  return inputs;
}

// Key heads [s0, key_heads, key_dim] for value heads that do not have neighbours in common.
Value tiled(const Value& heads, const RecurrentConfig& c) {
  return concat(Values(static_cast<std::size_t>(c.value_heads / c.key_heads), heads), 1);
}

}  // namespace

Value short_convolution(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const std::int64_t width = builder.facts.config.hidden_size;
  const Value projected = linear(builder, x, "shortconv_in", layer);
  const auto third = [&](std::int64_t i) { return slice(projected, -1, i * width, (i + 1) * width); };
  const Value y = convolved(builder, step, mul(third(0), third(2)), "shortconv_conv", layer);
  return linear(builder, mul(third(1), y), "shortconv_out", layer);
}

Value gated_delta_net(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const DeltaInputs inputs = delta_inputs(builder, x, layer);
  const Value mixed = silu(convolved(builder, step, inputs.mixed, "ssm_conv1d", layer));
  const std::int64_t keys = c.keys_width();
  Value query = normalized_heads(by_heads(slice(mixed, -1, 0, keys), c.key_heads, c.key_dim));
  Value key = normalized_heads(by_heads(slice(mixed, -1, keys, 2 * keys), c.key_heads, c.key_dim));
  const Value value = by_heads(slice(mixed, -1, 2 * keys, 2 * keys + c.values_width()), c.value_heads, c.value_dim);
  const auto key_dim = static_cast<double>(c.key_dim);
  key = mul_scalar(key, 1 / std::sqrt(key_dim));
  if (c.has_tiled_values) std::tie(query, key) = std::pair(tiled(query, c), tiled(key, c));
  const Value steps = softplus(add(in_dtype(inputs.alpha, DType::f32), vector_of(builder, "ssm_dt", layer)));
  const Value log_decay = mul(steps, vector_of(builder, "ssm_a", layer));
  const Value beta = sigmoid(in_dtype(inputs.beta, DType::f32));
  // One factor 1 / sqrt(key_dim) is of the norm of the queries, the other is the scale of attention.
  Value& states = step.pages_of("state", layer);
  auto [heads, updated] = linear_attention(maybe_inplace, query, key, value, log_decay, beta, states, step.batch,
                                           step.slots, 1 / key_dim, /*delta=*/true);
  states = std::move(updated);
  const Value normalized = reshape(norm(builder, heads, "ssm_norm", layer), {x.dim(0), c.values_width()});
  return linear(builder, mul(normalized, silu(inputs.gate)), "ssm_out", layer);
}

Values delta_net_forward(Builder& builder) {
  return llama_forward_with(builder, [](Builder& b, DecoderStep& step, const Value& x, int layer) {
    return b.facts.config.recurs(layer) ? gated_delta_net(b, step, x, layer)
                                        : self_attention_with_gate(b, step, x, layer);
  });
}

namespace {

using Extents = std::vector<std::int64_t>;
using ShapeRule = Extents (*)(const ModelConfig& config, int layer);

// The rows of a matrix or vector, if the layer has a short convolution.
template <Extents (*extents)(const ModelConfig&)>
Extents of_convolution(const ModelConfig& c, int layer) {
  return has_recurrent_kind(c, layer, RecurrentKind::short_convolution) ? extents(c) : Extents();
}
// The same, if that has biases.
template <Extents (*extents)(const ModelConfig&)>
Extents of_convolution_bias(const ModelConfig& c, int layer) {
  return c.recurrent && c.recurrent->has_convolution_bias ? of_convolution<extents>(c, layer) : Extents();
}
template <Extents (*extents)(const ModelConfig&)>
Extents of_projection_bias(const ModelConfig& c, int layer) {
  return c.recurrent && c.recurrent->has_projection_bias ? of_convolution<extents>(c, layer) : Extents();
}
template <Extents (*extents)(const ModelConfig&)>
Extents of_delta(const ModelConfig& c, int layer) {
  return has_recurrent_kind(c, layer, RecurrentKind::gated_delta) ? extents(c) : Extents();
}
// The same, if the files have the layer's projections, or those of beta and alpha, in one weight or not.
template <Extents (*extents)(const ModelConfig&), bool is_joined>
Extents of_inputs(const ModelConfig& c, int layer) {
  return c.recurrent && c.recurrent->is_joined == is_joined ? of_delta<extents>(c, layer) : Extents();
}
template <Extents (*extents)(const ModelConfig&), bool is_grouped>
Extents of_beta_alpha(const ModelConfig& c, int layer) {
  return c.recurrent && c.recurrent->is_grouped == is_grouped ? of_delta<extents>(c, layer) : Extents();
}

Extents thirds(const ModelConfig& c) { return {3 * c.hidden_size, c.hidden_size}; }
Extents per_third(const ModelConfig& c) { return {3 * c.hidden_size}; }
Extents square(const ModelConfig& c) { return {c.hidden_size, c.hidden_size}; }
Extents per_hidden(const ModelConfig& c) { return {c.hidden_size}; }
Extents mixed_rows(const ModelConfig& c) { return {c.convolution_channels(), c.hidden_size}; }
Extents value_rows(const ModelConfig& c) { return {c.recurrent->values_width(), c.hidden_size}; }
Extents mixed_and_gate_rows(const ModelConfig& c) {
  return {c.convolution_channels() + c.recurrent->values_width(), c.hidden_size};
}
Extents head_rows(const ModelConfig& c) { return {c.recurrent->value_heads, c.hidden_size}; }
Extents two_head_rows(const ModelConfig& c) { return {2 * c.recurrent->value_heads, c.hidden_size}; }
Extents per_head(const ModelConfig& c) { return {c.recurrent->value_heads}; }
Extents per_value(const ModelConfig& c) { return {c.recurrent->value_dim}; }
Extents output_rows(const ModelConfig& c) { return {c.hidden_size, c.recurrent->values_width()}; }

}  // namespace

void add_short_convolution(WeightTable& weights) {
  const std::string gguf = "blk.{}.shortconv.", folder = "model.layers.{}.conv.";
  const auto add = [&](const char* name, const char* stored, ShapeRule shape, ShapeRule bias) {
    weights.push_back({name, gguf + stored + ".weight", folder + stored + ".weight", shape});
    weights.push_back({std::string(name) + ".bias", gguf + stored + ".bias", folder + stored + ".bias", bias});
  };
  add("shortconv_in", "in_proj", of_convolution<thirds>, of_projection_bias<per_third>);
  add("shortconv_conv", "conv", of_convolution<shape_of_taps>, of_convolution_bias<per_hidden>);
  add("shortconv_out", "out_proj", of_convolution<square>, of_projection_bias<per_hidden>);
}

void add_gated_delta_net(WeightTable& weights) {
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.linear_attn.";
  const auto add = [&](const char* name, const char* in_gguf, const char* in_folder, ShapeRule shape) -> ModelWeight& {
    weights.push_back({name, gguf + in_gguf, folder + in_folder, shape});
    return weights.back();
  };
  add("ssm_qkvz", "ssm_in.weight", "in_proj_qkvz.weight", of_inputs<mixed_and_gate_rows, true>);
  add("ssm_ba", "ssm_ba.weight", "in_proj_ba.weight", of_beta_alpha<two_head_rows, true>);
  add("ssm_qkv", "attn_qkv.weight", "in_proj_qkv.weight", of_inputs<mixed_rows, false>);
  add("ssm_gate", "attn_gate.weight", "in_proj_z.weight", of_inputs<value_rows, false>);
  add("ssm_beta", "ssm_beta.weight", "in_proj_b.weight", of_beta_alpha<head_rows, false>);
  add("ssm_alpha", "ssm_alpha.weight", "in_proj_a.weight", of_beta_alpha<head_rows, false>);
  add("ssm_conv1d", "ssm_conv1d.weight", "conv1d.weight", of_delta<shape_of_taps>);
  add("ssm_dt", "ssm_dt.bias", "dt_bias", of_delta<per_head>).is_exact = true;
  add("ssm_a", "ssm_a", "A_log", of_delta<per_head>).logarithm_in = {CheckpointFormat::hugging_face};
  add("ssm_norm", "ssm_norm.weight", "norm.weight", of_delta<per_value>);
  add("ssm_out", "ssm_out.weight", "out_proj.weight", of_delta<output_rows>);
}

}  // namespace weft::nn
