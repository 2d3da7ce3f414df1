// Helium: Llama's layers, which rotate each element of a head with its neighbour.

#include "models/llama_layers.h"

MODEL(helium) {
  using namespace weft;
  models.add(llama_layers("helium",
                          {.defaults = R"({"rms_norm_eps": 1e-8, "max_position_embeddings": 4096,
                                           "rope_theta": 100000.0})",
                           .pairing_in_folders = RotaryPairing::neighbours,
                           .pairing_in_gguf = RotaryPairing::neighbours,
                           .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                                        {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
                          llama_sample("HeliumForCausalLM", "helium")));
}
