// Orion: Llama's layers with norms that subtract the mean.

#include "models/llama_layers.h"

MODEL(orion) {
  using namespace weft;
  ModelDefinition model = llama_layers("orion",
                                       {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 4096})",
                                        .norm = {.kind = NormKind::layer, .epsilon = "rms_norm_eps", .has_bias = true},
                                        .switches = attention_biases()},
                                       llama_sample("OrionForCausalLM", "orion"));
  model.fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}};
  models.add(std::move(model));
}
