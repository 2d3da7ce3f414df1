#include "nn/mamba.h"

#include <utility>

#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/recurrent_parts.h"
#include "ops/add.h"
#include "ops/mul.h"
#include "ops/rms_norm.h"
#include "ops/selective_scan.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/softplus.h"

namespace weft::nn {
namespace {

// A part of what is projected, with its norm, whose weight not all models have.
Value normalized_part(Builder& builder, const Value& part, const std::string& norm, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  if (!c.normalizes_parts) return part;
  const Value weight = builder.has(norm, layer) ? vector_of(builder, norm, layer) : Value();
  return rms_norm(part, weight, c.parts_epsilon);
}

// GGUF files have the decays, and folders their logarithms.
Value decays_of(Builder& builder, int layer) {
  const bool is_logarithm = builder.vector_role("ssm_a") == WeightRole::minus_exp;
  return builder.weight("ssm_a" + layer_suffix(layer), {builder.key("ssm_a", layer)},
                        is_logarithm ? WeightRole::decays : WeightRole::taps);
}

}  // namespace

Value mamba_mixer(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const RecurrentConfig& c = *builder.facts.config.recurrent;
  const std::int64_t width = c.values_width(), rank = c.step_rank, state = c.key_dim;
  const Value product = linear(builder, x, "ssm_in", layer);
  const Value mixed = silu(convolved(builder, step, slice(product, -1, 0, width), "ssm_conv1d", layer));
  const Value projected = linear(builder, mixed, "ssm_x", layer);
  const auto part = [&](std::int64_t first, std::int64_t count, const char* norm) {
    return normalized_part(builder, slice(projected, -1, first, first + count), norm, layer);
  };
  const Value steps = linear(builder, part(0, rank, "ssm_dt_norm"), "ssm_dt", layer);
  Value& states = step.pages_of("state", layer);
  auto [found, updated] = selective_scan(maybe_inplace, mixed, softplus(in_dtype(steps, DType::f32)),
                                         decays_of(builder, layer), part(rank, state, "ssm_b_norm"),
                                         part(rank + state, state, "ssm_c_norm"), states, step.batch, step.slots);
  states = std::move(updated);
  const Value passed = mul(in_dtype(mixed, DType::f32), vector_of(builder, "ssm_d", layer));
  const Value gate = in_dtype(slice(product, -1, width, 2 * width), DType::f32);
  const Value result = mul(add(in_dtype(found, DType::f32), passed), silu(gate));
  return linear(builder, in_dtype(result, x.dtype()), "ssm_out", layer);
}

namespace {

using Extents = std::vector<std::int64_t>;
using MambaExtents = Extents (*)(const ModelConfig&);

template <MambaExtents extents>
Extents of_first_mamba(const ModelConfig& c, int layer) {
  return has_recurrent_kind(c, layer, RecurrentKind::mamba) ? extents(c) : Extents();
}
template <bool RecurrentConfig::*has, MambaExtents extents>
Extents of_first_mamba_if(const ModelConfig& c, int layer) {
  return c.recurrent && (*c.recurrent).*has ? of_first_mamba<extents>(c, layer) : Extents();
}

Extents input_and_gate_rows(const ModelConfig& c) { return {2 * c.recurrent->values_width(), c.hidden_size}; }
Extents per_input_and_gate(const ModelConfig& c) { return {2 * c.recurrent->values_width()}; }
Extents per_inner(const ModelConfig& c) { return {c.recurrent->values_width()}; }
Extents part_rows(const ModelConfig& c) {
  return {c.recurrent->step_rank + 2 * c.recurrent->key_dim, c.recurrent->values_width()};
}
Extents step_rows(const ModelConfig& c) { return {c.recurrent->values_width(), c.recurrent->step_rank}; }
Extents decay_rows(const ModelConfig& c) { return {c.recurrent->values_width(), c.recurrent->key_dim}; }
Extents inner_output_rows(const ModelConfig& c) { return {c.hidden_size, c.recurrent->values_width()}; }
Extents per_inner_output(const ModelConfig& c) { return {c.hidden_size}; }

}  // namespace

void add_mamba(WeightTable& weights, const std::string& module) {
  using ShapeRule = Extents (*)(const ModelConfig& config, int layer);
  const auto add = [&](const char* name, const char* in_gguf, const char* in_folder, ShapeRule shape) -> ModelWeight& {
    weights.push_back({name, std::string("blk.{}.") + in_gguf, module + in_folder, shape});
    return weights.back();
  };
  using Recurrent = RecurrentConfig;
  add("ssm_in", "ssm_in.weight", "in_proj.weight", of_first_mamba<input_and_gate_rows>);
  add("ssm_in.bias", "ssm_in.bias", "in_proj.bias",
      of_first_mamba_if<&Recurrent::has_projection_bias, per_input_and_gate>);
  add("ssm_conv1d", "ssm_conv1d.weight", "conv1d.weight", of_first_mamba<shape_of_taps>);
  add("ssm_conv1d.bias", "ssm_conv1d.bias", "conv1d.bias",
      of_first_mamba_if<&Recurrent::has_convolution_bias, per_inner>);
  add("ssm_x", "ssm_x.weight", "x_proj.weight", of_first_mamba<part_rows>);
  add("ssm_dt", "ssm_dt.weight", "dt_proj.weight", of_first_mamba<step_rows>);
  add("ssm_dt.bias", "ssm_dt.bias", "dt_proj.bias", of_first_mamba<per_inner>);
  add("ssm_a", "ssm_a", "A_log", of_first_mamba<decay_rows>).logarithm_in = {CheckpointFormat::hugging_face};
  add("ssm_d", "ssm_d", "D", of_first_mamba<per_inner>).is_exact = true;
  add("ssm_out", "ssm_out.weight", "out_proj.weight", of_first_mamba<inner_output_rows>);
  add("ssm_out.bias", "ssm_out.bias", "out_proj.bias",
      of_first_mamba_if<&Recurrent::has_output_bias, per_inner_output>);
}

}  // namespace weft::nn
