// Phi 3.5 MoE: Mixtral's layers with norms that subtract the mean, biases of attention and of the head, and longrope.
// SparseMixer weighs the two experts of a token.

#include "base/error.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable phimoe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights, {.module = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"});
  return weights;
}

void check_phimoe(const ModelConfig& c) {
  nn::check_gated_decoder(c);
  USER_CHECK(!c.experts || c.experts->scores != ExpertScores::sparse_mixer || c.experts->used == 2,
             "[{}] num_experts_per_tok must be 2, but is {}", c.architecture, c.experts->used);
  USER_CHECK(c.mixer_tolerance >= 0, "[{}] router_jitter_noise must be at least 0, but is {}", c.architecture,
             c.mixer_tolerance);
}

constexpr const char* kPhiMoeSample = R"({
  "architectures": ["PhimoeForCausalLM"], "model_type": "phimoe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": null,
  "attention_bias": true, "lm_head_bias": true, "router_jitter_noise": 0.01, "input_jitter_noise": 0.0,
  "num_local_experts": 4, "num_experts_per_tok": 2, "tie_word_embeddings": false, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(phimoe) {
  using namespace weft;
  models.add(
      {.architectures = {"phimoe"},
       .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "rope_theta": 1000000.0,
                                 "num_local_experts": 16, "num_experts_per_tok": 2})",
                 .norm = {.kind = NormKind::layer,
                          .has_bias = true,
                          .own_epsilon_in_gguf = "attention.layer_norm_rms_epsilon"},
                 .window = WindowFacts{},
                 .experts = ExpertFacts{.count = "num_local_experts",
                                        .width = "intermediate_size",
                                        .scores = ExpertScores::sparse_mixer},
                 .numbers = {{&ModelConfig::mixer_tolerance, "router_jitter_noise"}},
                 .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                              {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                              {&ModelConfig::head_bias, "lm_head_bias", "", "output.bias"}},
                 .keys = {"input_jitter_noise", "long_mscale", "short_mscale"}},
       .weights = phimoe_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_mixture = {{"attn_quant", 1}, {"rope_kvcache", 1}},
       .fusions_of_experts = {{"act_quant", 1}},
       .check = check_phimoe,
       .sample_config = kPhiMoeSample});
}
