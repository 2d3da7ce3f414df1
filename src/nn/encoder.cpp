#include "nn/encoder.h"

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/embedding.h"

namespace weft::nn {
namespace {

using Extents = std::vector<std::int64_t>;

Extents embedded_position_rows(const ModelConfig& c, int) {
  if (c.position_rows == 0) return {};
  return {c.position_rows, c.token_width()};
}
Extents token_type_rows(const ModelConfig& c, int) {
  if (c.token_type_count == 0) return {};
  return {c.token_type_count, c.token_width()};
}
Extents per_embedding(const ModelConfig& c, int) { return {c.token_width()}; }
Extents per_embedding_of_bias(const ModelConfig& c, int) {
  if (!c.norm_has_bias) return {};
  return {c.token_width()};
}
Extents per_column(const ModelConfig& c, int) { return {c.hidden_size}; }
Extents per_column_of_bias(const ModelConfig& c, int) {
  if (!c.norm_has_bias) return {};
  return {c.hidden_size};
}
Extents projection_rows(const ModelConfig& c, int) { return {c.hidden_size, c.token_width()}; }
Extents projection_rows_if_needed(const ModelConfig& c, int layer) {
  return c.projects_embeddings() ? projection_rows(c, layer) : Extents();
}
Extents per_column_if_projected(const ModelConfig& c, int) {
  return c.projects_embeddings() ? Extents{c.hidden_size} : Extents();
}

void add_norm(WeightTable& weights, const std::string& name, const std::string& gguf, const std::string& folder) {
  weights.push_back({name, gguf + ".weight", folder + ".weight", per_column});
  weights.push_back({name + ".bias", gguf + ".bias", folder + ".bias", per_column_of_bias});
}

std::vector<std::int64_t> gate_rows(const ModelConfig& c, int) { return {c.intermediate_size, c.hidden_size}; }

}  // namespace

void begin_positions_after_padding(ModelConfig& c) {
  c.first_position_row = c.pad_token_id.value_or(1) + 1;
  if (c.format == CheckpointFormat::hugging_face) c.context_length -= c.first_position_row;
  c.position_rows = c.first_position_row + c.context_length;
}

void add_gate(WeightTable& weights, const std::string& name) {
  weights.push_back({"ffn_gate", "blk.{}.ffn_gate.weight", name + ".weight", gate_rows});
}

void add_embedding_norm(WeightTable& weights, const std::string& name) {
  weights.push_back({"token_embd_norm", "token_embd_norm.weight", name + ".weight", per_embedding});
  weights.push_back({"token_embd_norm.bias", "token_embd_norm.bias", name + ".bias", per_embedding_of_bias});
}

void add_embedding_projection(WeightTable& weights, const std::string& name, bool is_always) {
  weights.push_back({"token_embd_proj", "token_embd_proj.weight", name + ".weight",
                     is_always ? projection_rows : projection_rows_if_needed});
  weights.push_back({"token_embd_proj.bias", "token_embd_proj.bias", name + ".bias",
                     is_always ? per_column : per_column_if_projected});
}

WeightTable encoder_weights() {
  WeightTable weights = decoder_weights();
  const std::string module = "bert.embeddings.", layer = "bert.encoder.layer.{}.",
                    attention = layer + "attention.self.";
  erase(weights, {"attn_norm", "ffn_norm", "ffn_gate", "output_norm", "output"});
  rename(weights, {{"token_embd", "", module + "word_embeddings"},
                   {"attn_q", "", attention + "query"},
                   {"attn_k", "", attention + "key"},
                   {"attn_v", "", attention + "value"},
                   {"attn_output", "", layer + "attention.output.dense"},
                   {"ffn_up", "", layer + "intermediate.dense"},
                   {"ffn_down", "", layer + "output.dense"}});
  add_positions(weights, module + "position_embeddings");
  for (ModelWeight& weight : weights)
    if (weight.name == "position_embd") weight.shape = embedded_position_rows;
  weights.push_back(
      {"token_type_embd", "token_types.weight", module + "token_type_embeddings.weight", token_type_rows});
  add_embedding_norm(weights, module + "LayerNorm");
  add_norm(weights, "attn_output_norm", "blk.{}.attn_output_norm", layer + "attention.output.LayerNorm");
  add_norm(weights, "layer_output_norm", "blk.{}.layer_output_norm", layer + "output.LayerNorm");
  return weights;
}

Value encoder_embeddings(Builder& builder, const DecoderStep& step) {
  Value x = builder.facts.config.position_rows > 0 ? embedded_tokens_and_positions(builder, step)
                                                   : embedded_tokens(builder, step.ids);
  if (builder.has("token_type_embd")) {
    const Value types = builder.weight("token_type_embd", {builder.key("token_type_embd")}, WeightRole::codes);
    const Value types_of_tokens = builder.input("token_types", Meta::tensor(DType::i64, {tokens_symbol()}));
    x = add(x, embedding(types_of_tokens, types, x.dtype()));
  }
  x = norm(builder, x, "token_embd_norm");
  return builder.has("token_embd_proj") ? linear(builder, x, "token_embd_proj") : x;
}

Values norm_of_sum_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                          const LayerHalf& feed_forward, const NormsOfSums& norms) {
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    x = norm(builder, add(x, attention(x, layer)), norms.attention, layer);
    x = norm(builder, add(x, feed_forward(x, layer)), norms.feed_forward, layer);
  }
  builder.enter_layer(-1);
  return decoder_results(step, x);
}

Values encoder_forward(Builder& builder, LayerFeedForward feed_forward_of_layer) {
  DecoderStep step = decoder_step(builder);
  const auto attention = [&](const Value& x, int layer) { return self_attention(builder, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return feed_forward_of_layer(builder, x, layer); };
  return norm_of_sum_layers(builder, step, encoder_embeddings(builder, step), attention, feed_forward);
}

}  // namespace weft::nn
