// EXAONE 3, 3.5 and Deep: Llama's layers under other names.

#include "models/llama_layers.h"

namespace weft {
namespace {

nn::WeightTable exaone_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.";
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "ln_1"},
                       {"attn_q", "", layer + "attn.attention.q_proj"},
                       {"attn_k", "", layer + "attn.attention.k_proj"},
                       {"attn_v", "", layer + "attn.attention.v_proj"},
                       {"attn_output", "", layer + "attn.attention.out_proj"},
                       {"ffn_norm", "", layer + "ln_2"},
                       {"ffn_gate", "", layer + "mlp.c_fc_0"},
                       {"ffn_up", "", layer + "mlp.c_fc_1"},
                       {"ffn_down", "", layer + "mlp.c_proj"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

constexpr const char* kExaoneDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "rope_theta": 500000.0, "num_key_value_heads": 8
})";

}  // namespace
}  // namespace weft

MODEL(exaone) {
  using namespace weft;
  models.add(llama_layers("exaone",
                          {.key_names = {{"num_layers", "num_hidden_layers"},
                                         {"layer_norm_epsilon", "rms_norm_eps"},
                                         {"activation_function", "hidden_act"}},
                           .embedding = "transformer.wte.weight",
                           .defaults = kExaoneDefaults},
                          llama_sample("ExaoneForCausalLM", "exaone"), exaone_weights()));
}
