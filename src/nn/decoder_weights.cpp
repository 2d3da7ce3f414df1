#include "nn/decoder_weights.h"

#include <algorithm>

#include "base/error.h"

namespace weft::nn {
namespace {

using Extents = std::vector<std::int64_t>;

Extents if_so(bool has, Extents extents) { return has ? std::move(extents) : Extents(); }

Extents per_hidden(const ModelConfig& c, int) { return {c.hidden_size}; }
Extents per_hidden_in_norm(const ModelConfig& c, int) { return if_so(c.norm_has_bias, {c.hidden_size}); }
Extents per_hidden_of_norm(const ModelConfig& c, int) { return if_so(c.norm_has_weight, {c.hidden_size}); }
// Layers whose sums are normalized end with a norm.
Extents per_hidden_of_last(const ModelConfig& c, int) {
  return if_so(c.norm_has_weight && c.norms_before_halves, {c.hidden_size});
}
Extents per_hidden_in_last(const ModelConfig& c, int) {
  return if_so(c.norm_has_bias && c.norms_before_halves, {c.hidden_size});
}
// Most parallel layers have one norm for both halves.
bool has_second_norm(const ModelConfig& c) { return !c.is_parallel || c.norms_each_half; }
Extents per_hidden_of_second(const ModelConfig& c, int) {
  return if_so(c.norm_has_weight && has_second_norm(c), {c.hidden_size});
}
Extents per_hidden_in_second(const ModelConfig& c, int) {
  return if_so(c.norm_has_bias && has_second_norm(c), {c.hidden_size});
}
Extents per_head_dim(const ModelConfig& c, int layer) {
  return if_so(c.has_head_norms && c.attends(layer), {c.head_dim_of(layer)});
}
Extents per_key_head_dim(const ModelConfig& c, int layer) {
  return if_so(c.has_head_norms && c.has_own_kv(layer), {c.head_dim_of(layer)});
}
Extents query_heads_by_dim(const ModelConfig& c, int layer) {
  return if_so(c.has_head_norms, {c.head_count, c.head_dim_of(layer)});
}
Extents key_heads_by_dim(const ModelConfig& c, int layer) {
  return if_so(c.has_head_norms, {c.kv_head_count_of(layer), c.head_dim_of(layer)});
}
Extents per_query(const ModelConfig& c, int) { return {c.head_count * c.head_dim}; }
Extents per_feed_forward(const ModelConfig& c, int) { return {c.intermediate_size}; }
Extents per_key(const ModelConfig& c, int) { return {c.kv_head_count * c.head_dim}; }
Extents vocabulary_rows(const ModelConfig& c, int) { return {c.vocab_size, c.token_width()}; }
Extents position_rows(const ModelConfig& c, int) { return {c.position_rows, c.hidden_size}; }
Extents head_rows(const ModelConfig& c, int) { return if_so(!c.tie_word_embeddings, {c.vocab_size, c.token_width()}); }
Extents per_token_of_head(const ModelConfig& c, int) {
  return if_so(c.head_bias && !c.tie_word_embeddings, {c.vocab_size});
}

std::int64_t query_width(const ModelConfig& c, int layer) { return c.head_count * c.head_dim_of(layer); }
bool has_query(const ModelConfig& c, int layer) { return c.attends(layer) && !c.merges_query_key_value; }
std::int64_t key_width(const ModelConfig& c, int layer) { return c.kv_head_count_of(layer) * c.head_dim_of(layer); }
Extents embedding_projection_rows(const ModelConfig& c, int) {
  return if_so(c.projects_embeddings(), {c.hidden_size, c.embedding_width});
}
Extents output_projection_rows(const ModelConfig& c, int) {
  return if_so(c.projects_embeddings(), {c.embedding_width, c.hidden_size});
}
Extents query_rows(const ModelConfig& c, int layer) {
  return if_so(has_query(c, layer), {query_width(c, layer) * (c.has_attention_gate ? 2 : 1), c.hidden_size});
}
Extents key_rows(const ModelConfig& c, int layer) {
  return if_so(!c.merges_query_key_value && c.has_own_kv(layer), {key_width(c, layer), c.hidden_size});
}
Extents value_rows(const ModelConfig& c, int layer) {
  return c.full_values_are_keys && !c.slides(layer) ? Extents() : key_rows(c, layer);
}
std::int64_t query_key_value_width(const ModelConfig& c) { return (c.head_count + 2 * c.kv_head_count) * c.head_dim; }
Extents query_key_value_rows(const ModelConfig& c, int layer) {
  return if_so(c.merges_query_key_value && c.attends(layer), {query_key_value_width(c), c.hidden_size});
}
Extents per_query_row(const ModelConfig& c, int layer) {
  const std::int64_t rows = c.head_count * c.head_dim * (c.has_attention_gate ? 2 : 1);
  return if_so(c.attention_bias && has_query(c, layer), {rows});
}
Extents per_key_value_row(const ModelConfig& c, int layer) {
  return if_so(c.attention_bias && has_query(c, layer), {c.kv_head_count * c.head_dim});
}
Extents per_query_key_value_row(const ModelConfig& c, int layer) {
  return if_so(c.attention_bias && c.merges_query_key_value && c.attends(layer), {query_key_value_width(c)});
}
Extents attention_output_rows(const ModelConfig& c, int layer) {
  return if_so(c.attends(layer), {c.hidden_size, query_width(c, layer)});
}
Extents per_attention_output_row(const ModelConfig& c, int layer) {
  return if_so(c.attention_output_bias && c.attends(layer), {c.hidden_size});
}

Extents feed_forward_rows(const ModelConfig& c, int layer) {
  return if_so(c.has_dense(layer), {c.intermediate_size_of(layer), c.hidden_size});
}
Extents gate_up_rows(const ModelConfig& c, int layer) {
  return if_so(c.has_dense(layer), {2 * c.intermediate_size, c.hidden_size});
}
Extents per_feed_forward_row(const ModelConfig& c, int layer) {
  return if_so(c.mlp_bias && c.has_dense(layer), {c.intermediate_size});
}
Extents per_gate_up_row(const ModelConfig& c, int layer) {
  return if_so(c.mlp_bias && c.has_dense(layer), {2 * c.intermediate_size});
}
Extents feed_forward_output_rows(const ModelConfig& c, int layer) {
  return if_so(c.has_dense(layer), {c.hidden_size, c.intermediate_size_of(layer)});
}
Extents per_feed_forward_output_row(const ModelConfig& c, int layer) {
  return if_so(c.mlp_bias && c.has_dense(layer), {c.hidden_size});
}

template <ExpertScores scores>
Extents per_score_of_expert(const ModelConfig& c, int layer) {
  return c.routes(layer) && c.experts->scores == scores ? Extents{c.experts->count} : Extents();
}
bool has_experts_in(ExpertLayout layout, const ModelConfig& c, int layer) {
  return c.routes(layer) && c.experts->layout == layout;
}
Extents router_rows(const ModelConfig& c, int layer) {
  const bool has = c.routes(layer) && !c.experts->has_stacks_of_modules();
  return has ? Extents{c.experts->count, c.hidden_size} : Extents();
}
Extents router_rows_of_modules(const ModelConfig& c, int layer) {
  const bool has = c.routes(layer) && c.experts->has_stacks_of_modules();
  return has ? Extents{c.experts->count, c.hidden_size} : Extents();
}
std::int64_t expert_inputs(const ModelConfig& c) {
  return c.expert_input_width > 0 ? c.expert_input_width : c.hidden_size;
}
template <ExpertLayout layout>
Extents expert_rows(const ModelConfig& c, int layer) {
  const bool has = has_experts_in(layout, c, layer) && !c.experts->is_merged;
  return has ? Extents{c.experts->count, c.experts->width, expert_inputs(c)} : Extents();
}
template <ExpertLayout layout>
Extents expert_gate_up_rows(const ModelConfig& c, int layer) {
  const bool has = has_experts_in(layout, c, layer) && c.experts->is_merged;
  return has ? Extents{c.experts->count, 2 * c.experts->width, expert_inputs(c)} : Extents();
}
// The output of experts of the usual layout, whose folders have another name for it where gate and up are merged.
template <bool is_merged>
Extents usual_output_rows(const ModelConfig& c, int layer) {
  const bool has = has_experts_in(ExpertLayout::usual, c, layer) && c.experts->is_merged == is_merged;
  return has ? Extents{c.experts->count, expert_inputs(c), c.experts->width} : Extents();
}
template <ExpertLayout layout>
Extents expert_output_rows(const ModelConfig& c, int layer) {
  const bool has = has_experts_in(layout, c, layer);
  return has ? Extents{c.experts->count, expert_inputs(c), c.experts->width} : Extents();
}
bool has_shared_expert(const ModelConfig& c, int layer) { return c.routes(layer) && c.experts->shared_width > 0; }
Extents shared_rows(const ModelConfig& c, int layer) {
  return has_shared_expert(c, layer) ? Extents{c.experts->shared_width, c.hidden_size} : Extents();
}
Extents shared_gate_rows(const ModelConfig& c, int layer) {
  return has_shared_expert(c, layer) ? Extents{1, c.hidden_size} : Extents();
}
Extents shared_rows_in_gguf(const ModelConfig& c, int layer) {
  return c.format == CheckpointFormat::gguf ? shared_rows(c, layer) : Extents();
}
Extents merged_shared_rows(const ModelConfig& c, int layer) {
  const bool has = c.format == CheckpointFormat::hugging_face && has_shared_expert(c, layer);
  return has ? Extents{2 * c.experts->shared_width, c.hidden_size} : Extents();
}
Extents latent_input_rows(const ModelConfig& c, int layer) {
  return if_so(c.routes(layer) && c.expert_input_width > 0, {c.expert_input_width, c.hidden_size});
}
Extents latent_output_rows(const ModelConfig& c, int layer) {
  return if_so(c.routes(layer) && c.expert_input_width > 0, {c.hidden_size, c.expert_input_width});
}
Extents gate_up_rows_in_folders(const ModelConfig& c, int layer) {
  return c.format == CheckpointFormat::hugging_face ? gate_up_rows(c, layer) : Extents();
}
Extents feed_forward_rows_in_gguf(const ModelConfig& c, int layer) {
  return c.format == CheckpointFormat::gguf ? feed_forward_rows(c, layer) : Extents();
}
Extents shared_output_rows(const ModelConfig& c, int layer) {
  return has_shared_expert(c, layer) ? Extents{c.hidden_size, c.experts->shared_width} : Extents();
}

Extents layer_input_table(const ModelConfig& c, int) {
  return if_so(c.layer_input_width > 0, {c.layer_input_vocab_size, c.layer_count * c.layer_input_width});
}
Extents layer_input_rows(const ModelConfig& c, int) {
  return if_so(c.layer_input_width > 0, {c.layer_count * c.layer_input_width, c.hidden_size});
}
Extents per_layer_input(const ModelConfig& c, int) { return if_so(c.layer_input_width > 0, {c.layer_input_width}); }
Extents layer_gate_rows(const ModelConfig& c, int) {
  return if_so(c.layer_input_width > 0, {c.layer_input_width, c.hidden_size});
}
Extents layer_projection_rows(const ModelConfig& c, int) {
  return if_so(c.layer_input_width > 0, {c.hidden_size, c.layer_input_width});
}
Extents per_hidden_of_input(const ModelConfig& c, int) { return if_so(c.layer_input_width > 0, {c.hidden_size}); }

std::int64_t query_heads(const ModelConfig& c) { return c.head_count; }
std::int64_t key_heads(const ModelConfig& c) { return c.kv_head_count; }

using ShapeRule = Extents (*)(const ModelConfig& config, int layer);
using HeadRule = std::int64_t (*)(const ModelConfig& config);

// A weight and its bias, by their names without ".weight".
void add(WeightTable& weights, const std::string& name, const std::string& gguf, const std::string& hugging_face,
         ShapeRule shape, ShapeRule bias = nullptr, HeadRule rotated_heads = nullptr) {
  weights.push_back({name, gguf + ".weight", hugging_face + ".weight", shape, rotated_heads});
  if (bias != nullptr) weights.push_back({name + ".bias", gguf + ".bias", hugging_face + ".bias", bias, rotated_heads});
}

WeightTable::iterator find(WeightTable& weights, std::string_view name) {
  const auto found =
      std::find_if(weights.begin(), weights.end(), [&](const ModelWeight& weight) { return weight.name == name; });
  CHECK(found != weights.end(), "the table has no weight named {}", name);
  return found;
}

bool is_bias_of(const ModelWeight& weight, std::string_view name) { return weight.name == std::string(name) + ".bias"; }

}  // namespace

WeightTable decoder_weights() {
  WeightTable weights;
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.", attention = folder + "self_attn.",
                    mlp = folder + "mlp.";
  add(weights, "token_embd", "token_embd", "model.embed_tokens", vocabulary_rows);
  add(weights, "attn_norm", gguf + "attn_norm", folder + "input_layernorm", per_hidden_of_norm, per_hidden_in_norm);
  add(weights, "attn_q", gguf + "attn_q", attention + "q_proj", query_rows, per_query_row, query_heads);
  add(weights, "attn_k", gguf + "attn_k", attention + "k_proj", key_rows, per_key_value_row, key_heads);
  add(weights, "attn_v", gguf + "attn_v", attention + "v_proj", value_rows, per_key_value_row);
  add(weights, "attn_qkv", gguf + "attn_qkv", attention + "qkv_proj", query_key_value_rows, per_query_key_value_row);
  add(weights, "attn_output", gguf + "attn_output", attention + "o_proj", attention_output_rows,
      per_attention_output_row);
  add(weights, "ffn_norm", gguf + "ffn_norm", folder + "post_attention_layernorm", per_hidden_of_second,
      per_hidden_in_second);
  add(weights, "ffn_gate", gguf + "ffn_gate", mlp + "gate_proj", feed_forward_rows, per_feed_forward_row);
  add(weights, "ffn_up", gguf + "ffn_up", mlp + "up_proj", feed_forward_rows, per_feed_forward_row);
  add(weights, "ffn_down", gguf + "ffn_down", mlp + "down_proj", feed_forward_output_rows, per_feed_forward_output_row);
  add(weights, "output_norm", "output_norm", "model.norm", per_hidden_of_last, per_hidden_in_last);
  add(weights, "output", "output", "lm_head", head_rows, per_token_of_head);
  return weights;
}

void erase(WeightTable& weights, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    find(weights, name);
    std::erase_if(weights, [&](const ModelWeight& weight) { return weight.name == name || is_bias_of(weight, name); });
  }
}

void rename(WeightTable& weights, std::initializer_list<Renaming> names) {
  for (const auto& [name, gguf, hugging_face] : names) {
    find(weights, name);
    for (ModelWeight& weight : weights) {
      const bool is_bias = is_bias_of(weight, name);
      if (weight.name != name && !is_bias) continue;
      const char* suffix = is_bias ? ".bias" : ".weight";
      if (!gguf.empty()) weight.gguf = std::string(gguf) + suffix;
      if (!hugging_face.empty()) weight.hugging_face = std::string(hugging_face) + suffix;
    }
  }
}

void add_positions(WeightTable& weights, const std::string& name) {
  add(weights, "position_embd", "position_embd", name, position_rows);
}

void add_embedding_projections(WeightTable& weights, const std::string& input, const std::string& output) {
  add(weights, "token_embd_proj", "token_embd_proj", input, embedding_projection_rows);
  add(weights, "output_projection", "output_projection", output, output_projection_rows);
}

void transpose_in_folders(WeightTable& weights) {
  for (ModelWeight& weight : weights)
    if (weight.is_per_layer() && !weight.name.ends_with(".bias") && !weight.name.ends_with("_norm"))
      weight.transposed_in = {CheckpointFormat::hugging_face};
}

void erase_norms(WeightTable& weights) {
  std::erase_if(weights, [](const ModelWeight& weight) {
    return weight.name.ends_with("_norm") || weight.name.ends_with("_norm.bias");
  });
}

void merge_gate_and_up(WeightTable& weights) {
  erase(weights, {"ffn_gate", "ffn_up"});
  add(weights, "ffn_gate_up", "blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj", gate_up_rows, per_gate_up_row);
}

void add_experts(WeightTable& weights, const ExpertNames& names) {
  const std::string module = "model.layers.{}." + std::string(names.module), experts = module + ".experts.{}.";
  add(weights, "ffn_gate_inp", "blk.{}.ffn_gate_inp", module + ".gate", router_rows);
  const auto add_stacks = [&]<ExpertLayout layout>(const std::string& before, const std::string& after) {
    add(weights, "ffn_gate_exps", before + "ffn_gate" + after, experts + std::string(names.gate), expert_rows<layout>);
    add(weights, "ffn_up_exps", before + "ffn_up" + after, experts + std::string(names.up), expert_rows<layout>);
  };
  using enum ExpertLayout;
  const std::string down = experts + std::string(names.down);
  add_stacks.operator()<usual>("blk.{}.", "_exps");
  add(weights, "ffn_down_exps", "blk.{}.ffn_down_exps", down, usual_output_rows<false>);
  add(weights, "ffn_gate_up_exps", "blk.{}.ffn_gate_up_exps", module + ".experts.gate_up_proj",
      expert_gate_up_rows<usual>);
  add(weights, "ffn_down_exps", "blk.{}.ffn_down_exps", module + ".experts.down_proj", usual_output_rows<true>);
  add_stacks.operator()<single>("blk.{}.", ".{}");
  add(weights, "ffn_down_exps", "blk.{}.ffn_down.{}", down, expert_output_rows<single>);
  add(weights, "ffn_gate_inp", "blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate", router_rows_of_modules);
  const auto add_modules = [&]<ExpertLayout layout>(const std::vector<CheckpointFormat>& transposed_in) {
    weights.push_back(
        {"ffn_gate_up_exps", "blk.{}.ffn_gate_up_exps.weight", kModulesGateUp, expert_gate_up_rows<layout>});
    weights.back().transposed_in = transposed_in;
    weights.push_back({"ffn_down_exps", "blk.{}.ffn_down_exps.weight", kModulesDown, expert_output_rows<layout>});
    weights.back().transposed_in = transposed_in;
  };
  add_modules.operator()<modules>({});
  add_modules.operator()<transposed_modules>({CheckpointFormat::hugging_face});
}

void name_merged_experts(WeightTable& weights, const std::string& gate_up, const std::string& down) {
  for (ModelWeight& weight : weights) {
    if (weight.shape == expert_gate_up_rows<ExpertLayout::usual>) weight.hugging_face = gate_up;
    if (weight.shape == usual_output_rows<true>) weight.hugging_face = down;
  }
}

void add_expert_bias(WeightTable& weights, const std::string& name, ExpertScores scores) {
  const ShapeRule shape = scores == ExpertScores::sigmoid ? per_score_of_expert<ExpertScores::sigmoid>
                                                          : per_score_of_expert<ExpertScores::softmax>;
  weights.push_back({"exp_probs_b", "blk.{}.exp_probs_b.bias", "model.layers.{}." + name, shape});
}

void add_expert_latents(WeightTable& weights, std::string_view module) {
  const std::string folder = "model.layers.{}." + std::string(module) + ".";
  add(weights, "ffn_latent_down", "blk.{}.ffn_latent_down", folder + "fc1_latent_proj", latent_input_rows);
  add(weights, "ffn_latent_up", "blk.{}.ffn_latent_up", folder + "fc2_latent_proj", latent_output_rows);
}

void add_shared_expert(WeightTable& weights, std::string_view module) {
  const std::string folder = "model.layers.{}." + std::string(module) + ".";
  add(weights, "ffn_gate_shexp", "blk.{}.ffn_gate_shexp", folder + "gate_proj", shared_rows);
  add(weights, "ffn_up_shexp", "blk.{}.ffn_up_shexp", folder + "up_proj", shared_rows);
  add(weights, "ffn_down_shexp", "blk.{}.ffn_down_shexp", folder + "down_proj", shared_output_rows);
}

void merge_shared_in_folders(WeightTable& weights, std::string_view module) {
  const std::string gguf = "blk.{}.", folder = "model.layers.{}." + std::string(module) + ".",
                    input = folder + "input_linear", output = folder + "output_linear";
  for (const char* name : {"ffn_gate", "ffn_up"}) find(weights, name)->shape = feed_forward_rows_in_gguf;
  add(weights, "ffn_gate_up", gguf + "ffn_gate_up", input, gate_up_rows_in_folders);
  rename(weights, {{"ffn_gate", "", input}, {"ffn_up", "", input}, {"ffn_down", "", output}});
  add(weights, "ffn_gate_up_shexp", gguf + "ffn_gate_up_shexp", input, merged_shared_rows);
  for (const char* name : {"ffn_gate_shexp", "ffn_up_shexp"})
    add(weights, name, gguf + name, input, shared_rows_in_gguf);
  add(weights, "ffn_down_shexp", gguf + "ffn_down_shexp", output, shared_output_rows);
}

void add_shared_expert_gate(WeightTable& weights, std::string_view name) {
  add(weights, "ffn_gate_inp_shexp", "blk.{}.ffn_gate_inp_shexp", "model.layers.{}." + std::string(name),
      shared_gate_rows);
}

void add_head_norms(WeightTable& weights) {
  add(weights, "attn_q_norm", "blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", per_head_dim);
  add(weights, "attn_k_norm", "blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", per_key_head_dim);
}

void add_own_head_norms(WeightTable& weights) {
  add(weights, "attn_q_norm", "blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", query_heads_by_dim);
  add(weights, "attn_k_norm", "blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", key_heads_by_dim);
}

void add_row_norms(WeightTable& weights) {
  add(weights, "attn_q_norm", "blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", per_query);
  add(weights, "attn_k_norm", "blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", per_key);
}

void add_sub_norms(WeightTable& weights) {
  add(weights, "attn_sub_norm", "blk.{}.attn_sub_norm", "model.layers.{}.self_attn.attn_sub_norm", per_query);
  add(weights, "ffn_sub_norm", "blk.{}.ffn_sub_norm", "model.layers.{}.mlp.ffn_sub_norm", per_feed_forward);
}

void add_post_norms(WeightTable& weights) {
  add(weights, "post_attention_norm", "blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm",
      per_hidden);
  add(weights, "post_ffw_norm", "blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", per_hidden);
}

void add_layer_inputs(WeightTable& weights) {
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.";
  add(weights, "layer_input_embd", "per_layer_token_embd", "model.embed_tokens_per_layer", layer_input_table);
  add(weights, "layer_input_proj", "per_layer_model_proj", "model.per_layer_model_projection", layer_input_rows);
  add(weights, "layer_input_norm", "per_layer_proj_norm", "model.per_layer_projection_norm", per_layer_input);
  add(weights, "inp_gate", gguf + "inp_gate", folder + "per_layer_input_gate", layer_gate_rows);
  add(weights, "inp_proj", gguf + "proj", folder + "per_layer_projection", layer_projection_rows);
  add(weights, "post_norm", gguf + "post_norm", folder + "post_per_layer_input_norm", per_hidden_of_input);
}

void add_one_to_norms(WeightTable& weights) {
  for (ModelWeight& weight : weights)
    if (weight.name.ends_with("_norm")) weight.less_one_in = {CheckpointFormat::hugging_face};
}

}  // namespace weft::nn
