#include "nn/decoder.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/times.h"
#include "ops/add.h"
#include "ops/div_scalar.h"
#include "ops/embedding.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/index_select.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/tanh.h"
#include "tensor/convert.h"

namespace weft::nn {
namespace {

// The residual sum, kept as a separate value next to the output of the last half, as in vLLM.
class Residual {
 public:
  Residual(Builder& builder, const Value& x) : builder_(builder), sum_(x) {}

  // Adds x to the sum, if there is one to add, and returns the norm of the sum.
  Value add_and_norm(const Value& x, const std::string& name, int layer = -1) {
    const ModelConfig& c = builder_.facts.config;
    if (!x.present()) return norm(builder_, sum_, name, layer);
    const Value branch = times(x, c.residual_scale);
    if (c.norm != NormKind::rms || !builder_.has(name, layer)) {
      sum_ = add(sum_, branch);
      return norm(builder_, sum_, name, layer);
    }
    Value normalized;
    std::tie(normalized, sum_) =
        fused_add_rms_norm(maybe_inplace, branch, sum_, norm_weight(builder_, name, layer), c.norm_eps);
    return normalized;
  }

 private:
  Builder& builder_;
  Value sum_;
};

}  // namespace

Value& DecoderStep::pages_of(const std::string& kind, int layer) {
  const auto found = std::find(page_names.begin(), page_names.end(), kind + layer_suffix(layer));
  CHECK(found != page_names.end(), "layer {} has no {} pages", layer, kind);
  return pages[static_cast<std::size_t>(found - page_names.begin())];
}

DecoderStep decoder_step(Builder& builder) {
  const ModelConfig& c = builder.facts.config;
  const Meta per_token = Meta::tensor(DType::i64, {tokens_symbol()});
  DecoderStep step;
  step.ids = builder.input("ids", per_token);
  step.positions = builder.input("positions", per_token);
  step.slots = builder.input("slots", per_token);
  step.batch = builder.input("batch", Meta::batch());
  if (builder.facts.adapter_choices > 1) builder.adapters = builder.input(kAdapters, per_token);
  for (const LayerPages& pages : builder.facts.pages()) {
    step.pages.push_back(builder.donated_input(pages.name, Meta::pages(pages.layout)));
    step.page_names.push_back(pages.name);
  }
  bool has_positions = false, has_sliding_positions = false;
  for (int layer = 0; layer < c.layer_count; ++layer) {
    const RopeConfig* rope = c.attends(layer) ? c.rope_of(layer) : nullptr;
    has_positions |= rope == &c.rope;
    has_sliding_positions |= rope != nullptr && rope != &c.rope;
  }
  if (has_positions) step.rotary = builder.weight("cos_sin_cache", {}, WeightRole::rotary);
  if (has_sliding_positions)
    step.sliding_rotary = builder.weight("sliding_cos_sin_cache", {}, WeightRole::sliding_rotary);
  if (c.distance_bucket_count > 0) {
    step.score_bias = builder.weight("score_bias", {builder.key("distance_bias")}, WeightRole::distance_bias);
  } else if (c.has_score_bias()) {
    step.score_bias = builder.weight("score_bias", {}, WeightRole::alibi);
  }
  return step;
}

Value embedded_tokens(Builder& builder, const Value& ids) {
  const Value x = embedding(ids, builder.weight("token_embd", {builder.key("token_embd")}, WeightRole::linear),
                            builder.facts.dtype);
  return times(x, builder.facts.config.embedding_scale);
}

Value with_positions(Builder& builder, const DecoderStep& step, const Value& x) {
  const Value table = builder.weight("position_embd", {builder.key("position_embd")}, WeightRole::positions);
  return add(x, embedding(step.positions, table, builder.facts.dtype));
}

Value embedded_tokens_and_positions(Builder& builder, const DecoderStep& step) {
  return with_positions(builder, step, embedded_tokens(builder, step.ids));
}

Value times_root(Builder& builder, const Value& x, std::int64_t width) {
  std::byte rounded[sizeof(float)];
  const DType dtype = builder.facts.dtype;
  store_float(dtype, rounded, 0, static_cast<float>(std::sqrt(static_cast<double>(width))));
  return mul_scalar(x, load_float(dtype, rounded, 0));
}

Value times_root_of_width(Builder& builder, const Value& x) { return times_root(builder, x, x.dim(-1).number()); }

Values decoder_results(DecoderStep& step, const Value& hidden) {
  Values results{hidden};
  results.insert(results.end(), step.pages.begin(), step.pages.end());
  return results;
}

Values pre_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward) {
  Residual residual(builder, x);
  x = Value();
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    x = attention(residual.add_and_norm(x, "attn_norm", layer), layer);
    x = feed_forward(residual.add_and_norm(x, "ffn_norm", layer), layer);
  }
  builder.enter_layer(-1);
  return decoder_results(step, residual.add_and_norm(x, "output_norm"));
}

Values single_half_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& half) {
  Residual residual(builder, x);
  x = Value();
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    x = half(residual.add_and_norm(x, "attn_norm", layer), layer);
  }
  builder.enter_layer(-1);
  return decoder_results(step, residual.add_and_norm(x, "output_norm"));
}

Values sandwich_layers(Builder& builder, DecoderStep& step, const Value& x, const LayerHalf& attention,
                       const LayerHalf& feed_forward) {
  const auto normalized = [&](const LayerHalf& half, const char* name) {
    return [&builder, &half, name](const Value& input, int layer) {
      return norm(builder, half(input, layer), name, layer);
    };
  };
  return pre_norm_layers(builder, step, x, normalized(attention, "post_attention_norm"),
                         normalized(feed_forward, "post_ffw_norm"));
}

Values post_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                        const LayerHalf& feed_forward) {
  const double scale = builder.facts.config.residual_scale;
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    x = add(x, times(norm(builder, attention(x, layer), "post_attention_norm", layer), scale));
    x = add(x, times(norm(builder, feed_forward(x, layer), "post_ffw_norm", layer), scale));
  }
  builder.enter_layer(-1);
  return decoder_results(step, norm(builder, x, "output_norm"));
}

Values parallel_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward) {
  Residual residual(builder, x);
  x = Value();
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    const Value normalized = residual.add_and_norm(x, "attn_norm", layer);
    const bool has_second = builder.has("ffn_norm", layer);
    const Value second = has_second ? residual.add_and_norm(Value(), "ffn_norm", layer) : normalized;
    x = add(attention(normalized, layer), feed_forward(second, layer));
  }
  builder.enter_layer(-1);
  return decoder_results(step, residual.add_and_norm(x, "output_norm"));
}

Values decoder_head(Builder& builder) {
  const ModelConfig& c = builder.facts.config;
  const Value hidden = builder.input("hidden", Meta::tensor(builder.facts.dtype, {tokens_symbol(), c.hidden_size}));
  const Value rows = builder.input("rows", Meta::tensor(DType::i64, {rows_symbol()}));
  if (!c.generates()) return {index_select(hidden, rows)};
  std::vector<std::string> weights{builder.has_separate_head ? "output" : "token_embd"};
  if (builder.has("output_projection")) weights.insert(weights.begin(), "output_projection");
  const bool has_adapter = std::any_of(weights.begin(), weights.end(), [&](const std::string& weight) {
    return builder.has_adapter({builder.key(weight)});
  });
  if (builder.facts.adapter_choices > 1 && has_adapter)
    builder.adapters = index_select(builder.input(kAdapters, Meta::tensor(DType::i64, {tokens_symbol()})), rows);
  Value logits = index_select(hidden, rows);
  if (c.normalizes_head_columns) {
    const Value inverse =
        builder.weight("inverse_column_lengths", {builder.key(weights[0])}, WeightRole::inverse_column_lengths);
    logits = mul(logits, in_dtype(inverse, logits.dtype()));
  }
  for (const std::string& weight : weights) logits = linear(builder, logits, weight);
  logits = times(logits, c.logit_scale / c.logit_divisor);
  if (c.normalizes_head) {
    const Value inverse = builder.weight("inverse_lengths", {builder.key(weights.back())}, WeightRole::inverse_lengths);
    logits = mul(logits, in_dtype(inverse, logits.dtype()));
  }
  const double cap = c.logit_softcap;
  return {cap == 0 ? logits : mul_scalar(tanh(div_scalar(logits, cap)), cap)};
}

void check_decoder(const ModelConfig& c) {
  USER_CHECK(c.expert_count == 0 || c.experts,
             "[{}] mixtures of experts are not supported, but the model has {} experts", c.architecture,
             c.expert_count);
}

}  // namespace weft::nn
