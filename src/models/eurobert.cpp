// EuroBERT: Llama's layers, whose tokens attend to later ones, too.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

constexpr const char* kEurobertDefaults = R"({
  "vocab_size": 128256, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-5,
  "rope_theta": 250000.0, "tie_word_embeddings": true
})";

void complete_eurobert(ModelConfig& c) { c.tie_word_embeddings = true; }

nn::WeightTable eurobert_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"output"});
  return weights;
}

constexpr const char* kEurobertSample = R"({
  "architectures": ["EuroBertModel"], "model_type": "eurobert", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": 257
})";

}  // namespace
}  // namespace weft

MODEL(eurobert) {
  using namespace weft;
  models.add({.architectures = {"eurobert"},
              .facts = {.defaults = kEurobertDefaults,
                        .bidirectional = Bidirectional::always,
                        .switches = all_biases(),
                        .complete = complete_eurobert},
              .weights = eurobert_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kEurobertSample});
}
