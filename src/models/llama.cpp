// Llama: Llama 2 and 3, SmolLM2, TinyLlama, Falcon 3 and IQuest-Coder; also Mistral and the first Ministral, which adds
// a sliding window, and Mixtral, which adds a mixture of experts and whose GGUF files are Llama's. The layers are
// pre-norm decoder layers with grouped-query attention, rotary positions and a SiLU-gated feed-forward.

#include <utility>

#include "models/llama_layers.h"

namespace weft {
namespace {

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

ModelDefinition with_experts(ModelDefinition model) {
  model.fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  return model;
}

}  // namespace
}  // namespace weft

MODEL(llama) {
  using namespace weft;
  ModelDefinition llama = with_experts(llama_layers(
      "llama",
      {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048})",
       .defaults_of_types = {{"iquestcoder", R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072})"}},
       .text_config_defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                                   "num_hidden_layers": 32, "num_attention_heads": 32})",
       .pairing_in_gguf = RotaryPairing::neighbours,
       .experts = ExpertFacts{.count = "", .normalizes = true},
       .switches = all_biases()},
      llama_sample("LlamaForCausalLM", "llama"), llama_weights()));
  llama.aliases = {"iquestcoder"};
  llama.architecture_of_folder = [](const ModelConfig& c) { return c.experts ? "mixtral" : ""; };
  models.add(std::move(llama));
  ModelDefinition mistral =
      llama_layers("mistral",
                   {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 131072, "sliding_window": 4096})",
                    .text_config_defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                                   "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8})",
                    .window = WindowFacts{}},
                   llama_sample("MistralForCausalLM", "mistral", R"("sliding_window": 5)"));
  mistral.aliases = {"ministral"};
  models.add(std::move(mistral));
  ModelDefinition mixtral = with_experts(llama_layers(
      "mixtral",
      {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "num_local_experts": 8,
                       "num_experts_per_tok": 2, "rope_theta": 1000000.0})",
       .window = WindowFacts{},
       .pairing_in_gguf = RotaryPairing::neighbours,
       .experts = ExpertFacts{.count = "num_local_experts", .width = "intermediate_size", .normalizes = true},
       .keys = {"router_jitter_noise"}},
      llama_sample("MixtralForCausalLM", "mixtral",
                   R"("sliding_window": null, "num_local_experts": 4, "num_experts_per_tok": 2)"),
      mixtral_weights()));
  mixtral.gguf_architecture = "llama";
  models.add(std::move(mixtral));
}
