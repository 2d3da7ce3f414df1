// Seed-OSS: Llama's layers with biases of queries, keys and values.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable seed_oss_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "blk.{}.post_attention_norm", ""}});
  return weights;
}

constexpr const char* kSeedOssSample = R"({
  "architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "attention_bias": true, "attention_out_bias": false, "mlp_bias": false, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(seed_oss) {
  using namespace weft;
  models.add(
      {.architectures = {"seed_oss"},
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 524288, "head_dim": 128, "attention_bias": true})",
            .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                         {&ModelConfig::attention_output_bias, "attention_out_bias", "", "blk.0.attn_output.bias"},
                         {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
       .weights = seed_oss_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kSeedOssSample});
}
