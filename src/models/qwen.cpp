// Qwen 1: Llama's layers under other names, with one weight and biases for queries, keys and values.

#include "models/llama_layers.h"

namespace weft {
namespace {

void complete_qwen(ModelConfig& c) { c.attention_bias = c.merges_query_key_value = true; }

nn::WeightTable qwen_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.";
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "ln_1"},
                       {"attn_qkv", "", layer + "attn.c_attn"},
                       {"attn_output", "", layer + "attn.c_proj"},
                       {"ffn_norm", "", layer + "ln_2"},
                       {"ffn_gate", "", layer + "mlp.w2"},
                       {"ffn_up", "", layer + "mlp.w1"},
                       {"ffn_down", "", layer + "mlp.c_proj"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

constexpr const char* kQwenSample = R"({
  "architectures": ["QWenLMHeadModel"], "model_type": "qwen", "hidden_size": 64, "intermediate_size": 192,
  "num_hidden_layers": 2, "num_attention_heads": 4, "seq_length": 128,
  "layer_norm_epsilon": 1e-6, "rotary_emb_base": 10000, "tie_word_embeddings": false, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(qwen) {
  using namespace weft;
  models.add(llama_layers(
      "qwen",
      // The context is seq_length, the trained length: use_dynamic_ntk and use_logn_attn change longer texts only.
      {.key_names = {{"seq_length", "max_position_embeddings"},
                     {"rotary_emb_base", "rope_theta"},
                     {"kv_channels", "head_dim"}},
       .embedding = "transformer.wte.weight",
       .defaults = R"({"layer_norm_epsilon": 1e-6, "max_position_embeddings": 8192})",
       .norm = {.epsilon = "layer_norm_epsilon"},
       .counts_gate_and_up = true,
       .keys = {"use_dynamic_ntk", "use_logn_attn", "use_cache_quantization", "use_cache_kernel", "softmax_in_fp32",
                "onnx_safe", "bf16", "fp16", "fp32", "attn_dropout_prob", "emb_dropout_prob"},
       .always = {"no_bias"},
       .complete = complete_qwen},
      kQwenSample, qwen_weights()));
}
