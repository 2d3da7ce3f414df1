#include "io/latent_config.h"

#include "base/error.h"

namespace weft {
namespace {

constexpr Range<std::int64_t> kLatentWidths = {2, 65536};

void set_heads(const LatentConfig& latents, ModelConfig& config) {
  config.latents = latents;
  config.kv_head_count = 1;
  config.head_dim = latents.rotary_dim + latents.rank;
  config.rope.rotary_dim = latents.rotary_dim;
}

template <class Fields>
void check_rotary_part(const Fields& fields, std::string_view key, const LatentConfig& latents) {
  USER_CHECK(latents.rotary_dim % 2 == 0, "[{}] {} must be even, but is {}", fields.where(), fields.name(key),
             latents.rotary_dim);
}

}  // namespace

std::vector<std::string_view> latent_keys() {
  return {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"};
}

std::vector<std::string_view> gguf_latent_keys() {
  return {"attention.q_lora_rank",      "attention.kv_lora_rank", "attention.key_length_mla",
          "attention.value_length_mla", "attention.key_length",   "attention.value_length"};
}

Json latent_json(const LatentConfig& latents) {
  return {{"q_lora_rank", latents.query_rank > 0 ? Json(latents.query_rank) : Json()},
          {"kv_lora_rank", latents.rank},
          {"qk_nope_head_dim", latents.plain_dim},
          {"qk_rope_head_dim", latents.rotary_dim},
          {"v_head_dim", latents.value_dim}};
}

void read_latents(const JsonFields& fields, ModelConfig& config) {
  LatentConfig latents;
  latents.query_rank = integer_in(fields, "q_lora_rank", {0, kLatentWidths.greatest}).value_or(0);
  latents.rank = needed_integer_in(fields, "kv_lora_rank", kLatentWidths);
  latents.plain_dim = needed_integer_in(fields, "qk_nope_head_dim", kLatentWidths);
  latents.rotary_dim = needed_integer_in(fields, "qk_rope_head_dim", kLatentWidths);
  latents.value_dim = integer_in(fields, "v_head_dim", kLatentWidths).value_or(config.hidden_size / config.head_count);
  check_rotary_part(fields, "qk_rope_head_dim", latents);
  set_heads(latents, config);
}

// Folders of mlx-lm have them apart (io/mlx_stacks.h), but for early ones.
void read_latent_layout(const std::function<const Meta*(const std::string&)>& find_tensor, ModelConfig& config) {
  if (config.latents) config.latents->is_joined = find_tensor("model.layers.0.self_attn.embed_q.0.weight") == nullptr;
}

// Files of early converters have the weights of keys and values in one tensor. Their widths of heads are those of keys
// and values, for which later files have keys of their own. Without a width of values, it is that of usual heads.
void read_latents(const GgufFields& fields, const Gguf& gguf, ModelConfig& config) {
  LatentConfig latents;
  latents.query_rank = integer_in(fields, "attention.q_lora_rank", {0, kLatentWidths.greatest}).value_or(0);
  latents.rank = needed_integer_in(fields, "attention.kv_lora_rank", kLatentWidths);
  latents.rotary_dim = needed_integer_in(fields, "rope.dimension_count", kLatentWidths);
  const bool is_early = !fields.has("attention.key_length_mla");
  const std::string_view key_name = is_early ? "attention.key_length" : "attention.key_length_mla";
  const std::int64_t key = needed_integer_in(fields, key_name, kLatentWidths);
  USER_CHECK(key > latents.rotary_dim, "[{}] {} must be above {} {}, but is {}", fields.where(), fields.name(key_name),
             fields.name("rope.dimension_count"), latents.rotary_dim, key);
  latents.plain_dim = key - latents.rotary_dim;
  const std::string_view value_name = is_early ? "attention.value_length" : "attention.value_length_mla";
  latents.value_dim = integer_in(fields, value_name, kLatentWidths).value_or(config.hidden_size / config.head_count);
  latents.is_joined = gguf.find_tensor("blk.0.attn_kv_b.weight") != nullptr;
  check_rotary_part(fields, "rope.dimension_count", latents);
  set_heads(latents, config);
}

}  // namespace weft
