// Llama: Llama 2 and 3, SmolLM2, TinyLlama and Falcon 3; also Mistral, which adds a sliding window. The layers are
// pre-norm decoder layers with grouped-query attention, rotary positions and a SiLU-gated feed-forward.

#include "nn/llama.h"

#include <utility>

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft {
namespace {

constexpr const char* kLlamaSample = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kMistralSample = R"({
  "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": 5,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

ModelDefinition llama_layers(const char* architecture, ArchitectureFacts facts, const char* sample_config) {
  return {.architectures = {architecture},
          .facts = std::move(facts),
          .weights = nn::decoder_weights(),
          .forward = nn::llama_forward,
          .head = nn::decoder_head,
          .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace
}  // namespace weft

MODEL(llama) {
  using namespace weft;
  models.add(
      llama_layers("llama",
                   {.pairing_in_gguf = RotaryPairing::neighbours,
                    .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                                 {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                                 {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
                   kLlamaSample));
  models.add(
      llama_layers("mistral", {.defaults = R"({"sliding_window": 4096})", .window = WindowFacts{}}, kMistralSample));
}
