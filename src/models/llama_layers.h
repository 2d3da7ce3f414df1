#pragma once

// The definition of a family with Llama's layers. Its file states the facts, the names of its weights if they are
// others, and what else differs.

#include <string>
#include <utility>

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {

// The config.json of a tiny model; `more` are further members.
inline std::string llama_sample(const std::string& model_class, const std::string& type, const std::string& more = "") {
  return R"({"architectures": [")" + model_class + R"("], "model_type": ")" + type + R"(", "hidden_act": "silu",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256)" +
         (more.empty() ? "" : ", " + more) + "}";
}

inline ModelDefinition llama_layers(const char* architecture, ArchitectureFacts facts, const std::string& sample_config,
                                    nn::WeightTable weights = nn::decoder_weights()) {
  return {.architectures = {architecture},
          .facts = std::move(facts),
          .weights = std::move(weights),
          .forward = nn::llama_forward,
          .head = nn::decoder_head,
          .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace weft
