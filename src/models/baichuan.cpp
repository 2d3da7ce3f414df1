// Baichuan 1 and 2: Llama's layers with one weight for queries, keys and values. The models of 13B have ALiBi in place
// of rotary positions, and in Baichuan 2 each row of the head's weight is divided by its length. GGUF files have a
// weight for each of queries, keys and values.

#include "models/llama_layers.h"

namespace weft {
namespace {

// No key of the files states these two. The models of 7B have 32 layers, and Baichuan 1 has 64000 tokens.
constexpr std::int64_t kLayersWithAlibi = 40;
constexpr std::int64_t kTokensOfSecond = 125696;

void complete_baichuan(ModelConfig& c) {
  c.merges_query_key_value = c.format == CheckpointFormat::hugging_face;
  c.normalizes_head = c.vocab_size == kTokensOfSecond;
  if (c.layer_count != kLayersWithAlibi) return;
  c.alibi_bias_max = 8;
  c.is_rotated.assign(static_cast<std::size_t>(c.layer_count), false);
}

nn::WeightTable baichuan_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"attn_qkv", "", "model.layers.{}.self_attn.W_pack"}});
  return weights;
}

// The layers of the models of 7B are Llama's, and so are those of Baichuan 1 with its head.
std::string folder_of_baichuan(const ModelConfig& c) { return c.has_score_bias() || c.normalizes_head ? "" : "llama"; }

}  // namespace
}  // namespace weft

MODEL(baichuan) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("baichuan",
                   {.key_names = {{"model_max_length", "max_position_embeddings"}},
                    .defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "hidden_act": "silu"})",
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .keys = {"z_loss_weight"},
                    .complete = complete_baichuan},
                   llama_sample("BaichuanForCausalLM", "baichuan"), baichuan_weights());
  model.architecture_of_folder = folder_of_baichuan;
  models.add(std::move(model));
}
