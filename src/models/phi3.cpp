// Phi 3, 3.5, 4 and 4-mini: Llama's layers. Checkpoints have one weight for query, key and value, and one for gate and
// up.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable phi3_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::merge_gate_and_up(weights);
  return weights;
}

void complete_phi3(ModelConfig& c) { c.merges_query_key_value = true; }

constexpr const char* kPhi3Sample = R"({
  "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "original_max_position_embeddings": 128, "partial_rotary_factor": 0.75, "sliding_window": 20, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(phi3) {
  using namespace weft;
  models.add({.architectures = {"phi3"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 4096})",
                        .window = WindowFacts{},
                        .complete = complete_phi3},
              .weights = phi3_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kPhi3Sample});
}
