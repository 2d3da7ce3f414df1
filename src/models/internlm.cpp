// InternLM 2 and 2.5: Llama's layers under other names, with one weight for queries, keys and values, whose rows are
// sorted by key head. InternLM 3 has Llama's names and other keys of its biases. GGUF files of both have Llama's
// weights.

#include "models/llama_layers.h"

namespace weft {
namespace {

nn::WeightTable internlm2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "model.layers.{}.";
  nn::rename(weights, {{"token_embd", "", "model.tok_embeddings"},
                       {"attn_norm", "", layer + "attention_norm"},
                       {"attn_qkv", "", layer + "attention.wqkv"},
                       {"attn_output", "", layer + "attention.wo"},
                       {"ffn_norm", "", layer + "ffn_norm"},
                       {"ffn_gate", "", layer + "feed_forward.w1"},
                       {"ffn_up", "", layer + "feed_forward.w3"},
                       {"ffn_down", "", layer + "feed_forward.w2"}});
  return weights;
}

void complete_internlm2(ModelConfig& c) { c.merges_query_key_value = c.format == CheckpointFormat::hugging_face; }

}  // namespace
}  // namespace weft

MODEL(internlm) {
  using namespace weft;
  ModelDefinition second = llama_layers("internlm2",
                                        {.embedding = "model.tok_embeddings.weight",
                                         .head = "output",
                                         .defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048})",
                                         .groups_heads_in_folders = true,
                                         .pairing_in_gguf = RotaryPairing::neighbours,
                                         .switches = attention_biases("bias", "bias"),
                                         .complete = complete_internlm2},
                                        llama_sample("InternLM2ForCausalLM", "internlm2"), internlm2_weights());
  second.architecture_of_folder = [](const ModelConfig&) { return "llama"; };
  models.add(std::move(second));
  ModelDefinition third = llama_layers("internlm3",
                                       {.key_names = {{"qkv_bias", "attention_bias"}, {"bias", "mlp_bias"}},
                                        .defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768})",
                                        .pairing_in_gguf = RotaryPairing::neighbours,
                                        .switches = all_biases("attention_bias", "mlp_bias")},
                                       llama_sample("InternLM3ForCausalLM", "internlm3"));
  third.gguf_architecture = "llama";
  models.add(std::move(third));
}
