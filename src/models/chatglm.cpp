// ChatGLM 2 and 3, and GLM-4-9B with its first names: Llama's layers with one weight for queries, keys and values, one
// for gate and up, and rotary positions of half of each head, which rotate each element with its neighbour. GGUF files
// of later GLM-4 (src/models/glm4.cpp) have this architecture, too.

#include "models/llama_layers.h"

namespace weft {
namespace {

void complete_chatglm(ModelConfig& c) {
  if (c.format == CheckpointFormat::gguf) return;
  c.merges_query_key_value = true;
  c.rope.theta *= c.rope_ratio;
}

nn::WeightTable chatglm_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.encoder.layers.{}.";
  nn::merge_gate_and_up(weights);
  nn::rename(weights, {{"token_embd", "", "transformer.embedding.word_embeddings"},
                       {"attn_norm", "", layer + "input_layernorm"},
                       {"attn_qkv", "", layer + "self_attention.query_key_value"},
                       {"attn_output", "", layer + "self_attention.dense"},
                       {"ffn_norm", "", layer + "post_attention_layernorm"},
                       {"ffn_gate_up", "", layer + "mlp.dense_h_to_4h"},
                       {"ffn_down", "", layer + "mlp.dense_4h_to_h"},
                       {"output_norm", "", "transformer.encoder.final_layernorm"}});
  return weights;
}

constexpr const char* kChatGlmDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "partial_rotary_factor": 0.5, "hidden_act": "silu"
})";

}  // namespace
}  // namespace weft

MODEL(chatglm) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("chatglm",
                   {.key_names = {{"num_layers", "num_hidden_layers"},
                                  {"padded_vocab_size", "vocab_size"},
                                  {"seq_length", "max_position_embeddings"},
                                  {"ffn_hidden_size", "intermediate_size"},
                                  {"layernorm_epsilon", "rms_norm_eps"},
                                  {"multi_query_group_num", "num_key_value_heads"},
                                  {"kv_channels", "head_dim"}},
                    .embedding = "transformer.embedding.word_embeddings.weight",
                    .head = "transformer.output_layer",
                    .defaults = kChatGlmDefaults,
                    .pairing_in_folders = RotaryPairing::neighbours,
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .numbers = {{&ModelConfig::rope_ratio, "rope_ratio"}},
                    .switches = {{&ModelConfig::attention_bias, "add_qkv_bias", "", "blk.0.attn_q.bias"},
                                 {&ModelConfig::attention_output_bias, "add_bias_linear", "", "blk.0.attn_output.bias"},
                                 {&ModelConfig::mlp_bias, "add_bias_linear", "", "blk.0.ffn_up.bias"}},
                    // The scale of scores by layers is divided out again.
                    .keys = {"apply_query_key_layer_scaling", "fp32_residual_connection", "pre_seq_len",
                             "prefix_projection", "quantization_bit"},
                    .always = {"post_layer_norm", "rmsnorm", "multi_query_attention", "original_rope"},
                    .complete = complete_chatglm},
                   llama_sample("ChatGLMModel", "chatglm"), chatglm_weights());
  model.architecture_of_folder = [](const ModelConfig&) { return "glm"; };
  models.add(std::move(model));
}
