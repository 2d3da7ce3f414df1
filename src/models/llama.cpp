// Llama: Llama 2 and 3, SmolLM2, TinyLlama and Falcon 3; also Mistral, which adds a sliding window, and Mixtral, which
// adds a mixture of experts and whose GGUF files are Llama's. The layers are pre-norm decoder layers with grouped-query
// attention, rotary positions and a SiLU-gated feed-forward.

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

constexpr const char* kMixtralSample = R"({
  "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": null,
  "num_local_experts": 4, "num_experts_per_tok": 2, "tie_word_embeddings": false, "vocab_size": 257,
  "eos_token_id": 256
})";

// Folders of Llama have no experts, but GGUF files may.
nn::WeightTable llama_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights);
  return weights;
}

nn::WeightTable mixtral_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights, {.module = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"});
  return weights;
}

ModelDefinition llama_layers(const char* architecture, ArchitectureFacts facts, const char* sample_config) {
  return {.architectures = {architecture},
          .facts = std::move(facts),
          .weights = llama_weights(),
          .forward = nn::llama_forward,
          .head = nn::decoder_head,
          .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
          .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
          .fusions_of_experts = {{"act_quant", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace
}  // namespace weft

MODEL(llama) {
  using namespace weft;
  ModelDefinition llama =
      llama_layers("llama",
                   {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048})",
                    .text_config_defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                                                "num_hidden_layers": 32, "num_attention_heads": 32})",
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .experts = ExpertFacts{.count = "", .normalizes = true},
                    .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                                 {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                                 {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
                   kLlamaSample);
  llama.architecture_of_folder = [](const ModelConfig& c) { return c.experts ? "mixtral" : ""; };
  models.add(std::move(llama));
  models.add(llama_layers("mistral",
                          {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 131072,
                                           "sliding_window": 4096})",
                           .text_config_defaults = R"({"vocab_size": 32000, "hidden_size": 4096,
                                    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                                    "num_key_value_heads": 8})",
                           .window = WindowFacts{}},
                          kMistralSample));
  ModelDefinition mixtral = llama_layers(
      "mixtral",
      {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "num_local_experts": 8,
                       "num_experts_per_tok": 2, "rope_theta": 1000000.0})",
       .window = WindowFacts{},
       .pairing_in_gguf = RotaryPairing::neighbours,
       .experts = ExpertFacts{.count = "num_local_experts", .width = "intermediate_size", .normalizes = true},
       .keys = {"router_jitter_noise"}},
      kMixtralSample);
  mixtral.gguf_architecture = "llama";
  mixtral.weights = mixtral_weights();
  models.add(std::move(mixtral));
}
