#include "nn/latent_weights.h"

namespace weft::nn {
namespace {

using Extents = std::vector<std::int64_t>;
std::int64_t query_width(const ModelConfig& c) { return c.head_count * (c.latents->plain_dim + c.latents->rotary_dim); }
Extents whole_query_rows(const ModelConfig& c, int) {
  return c.latents->query_rank > 0 ? Extents() : Extents{query_width(c), c.hidden_size};
}
Extents query_latent_rows(const ModelConfig& c, int) {
  return c.latents->query_rank > 0 ? Extents{c.latents->query_rank, c.hidden_size} : Extents();
}
Extents per_query_latent(const ModelConfig& c, int) {
  return c.latents->query_rank > 0 ? Extents{c.latents->query_rank} : Extents();
}
Extents query_rows_of_latents(const ModelConfig& c, int) {
  return c.latents->query_rank > 0 ? Extents{query_width(c), c.latents->query_rank} : Extents();
}
Extents latent_rows(const ModelConfig& c, int) { return {c.latents->rank + c.latents->rotary_dim, c.hidden_size}; }
Extents per_latent(const ModelConfig& c, int) { return {c.latents->rank}; }
template <bool is_joined>
Extents key_stack(const ModelConfig& c, int) {
  const bool has = c.latents->is_joined == is_joined;
  return has ? Extents{c.head_count, c.latents->rank, c.latents->plain_dim} : Extents();
}
template <bool is_joined>
Extents value_stack(const ModelConfig& c, int) {
  const bool has = c.latents->is_joined == is_joined;
  return has ? Extents{c.head_count, c.latents->value_dim, c.latents->rank} : Extents();
}
Extents keys_and_values(const ModelConfig& c, int) {
  return {c.head_count * (c.latents->plain_dim + c.latents->value_dim), c.latents->rank};
}
Extents value_output_rows(const ModelConfig& c, int) { return {c.hidden_size, c.head_count * c.latents->value_dim}; }

}  // namespace

void replace_by_latent_attention(WeightTable& weights) {
  erase(weights, {"attn_q", "attn_k", "attn_v", "attn_output"});
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.self_attn.";
  const auto add = [&](const std::string& name, const std::string& in_folder, auto shape) {
    weights.push_back({name, gguf + name + ".weight", folder + in_folder + ".weight", shape});
  };
  add("attn_q", "q_proj", whole_query_rows);
  add("attn_q_a", "q_a_proj", query_latent_rows);
  add("attn_q_a_norm", "q_a_layernorm", per_query_latent);
  add("attn_q_b", "q_b_proj", query_rows_of_latents);
  add("attn_kv_a_mqa", "kv_a_proj_with_mqa", latent_rows);
  add("attn_kv_a_norm", "kv_a_layernorm", per_latent);
  add("attn_k_b", "embed_q.{}", key_stack<false>);
  add("attn_v_b", "unembed_out.{}", value_stack<false>);
  const auto add_part = [&](const std::string& name, auto shape) {
    weights.push_back({name, gguf + "attn_kv_b.weight", folder + "kv_b_proj.weight", shape});
    weights.back().shape_of_whole = keys_and_values;
  };
  add_part("attn_k_b", key_stack<true>);
  add_part("attn_v_b", value_stack<true>);
  add("attn_output", "o_proj", value_output_rows);
}

}  // namespace weft::nn
