// MPNet: BERT's layers without token types, with RoBERTa's positions, and in all layers the same learned biases of
// attention's scores, by head and bucket of distances. llama.cpp has no such architecture.

#include "base/error.h"
#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values mpnet_forward(Builder& b) { return nn::encoder_forward(b, nn::plain_feed_forward); }

constexpr const char* kMpnetDefaults = R"({
  "vocab_size": 30527, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 512, "relative_attention_num_buckets": 32, "hidden_act": "gelu",
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

void complete_mpnet(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.tie_word_embeddings = true;
  nn::begin_positions_after_padding(c);
}

void check_mpnet(const ModelConfig& c) {
  nn::check_plain_decoder(c);
  USER_CHECK(c.distance_bucket_count % 4 == 0 && c.distance_bucket_count >= 4 && c.distance_bucket_count <= 256,
             "[{}] relative_attention_num_buckets must be a multiple of 4 up to 256, but is {}", c.architecture,
             c.distance_bucket_count);
}

std::vector<std::int64_t> per_bucket_and_head(const ModelConfig& c, int) {
  return {c.distance_bucket_count, c.head_count};
}

nn::WeightTable mpnet_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  const std::string encoder = "bert.encoder.", layer = encoder + "layer.{}.", attention = layer + "attention.attn.";
  nn::erase(weights, {"token_type_embd"});
  nn::rename(weights, {{"attn_q", "", attention + "q"},
                       {"attn_k", "", attention + "k"},
                       {"attn_v", "", attention + "v"},
                       {"attn_output", "", attention + "o"},
                       {"attn_output_norm", "", layer + "attention.LayerNorm"}});
  weights.push_back(
      {"distance_bias", "attn_rel_b.weight", encoder + "relative_attention_bias.weight", per_bucket_and_head});
  return weights;
}

constexpr const char* kMpnetSample = R"({
  "architectures": ["MPNetModel"], "model_type": "mpnet", "hidden_act": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 130,
  "relative_attention_num_buckets": 32, "layer_norm_eps": 1e-5, "vocab_size": 257, "pad_token_id": 1
})";

}  // namespace
}  // namespace weft

MODEL(mpnet) {
  using namespace weft;
  models.add({.architectures = {"mpnet"},
              .facts = {.embedding = "bert.embeddings.word_embeddings.weight",
                        .defaults = kMpnetDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .first_position_row = 2,
                        .counts = {{&ModelConfig::distance_bucket_count, "relative_attention_num_buckets", "",
                                    "attn_rel_b.weight"}},
                        .score_layers = {{"classifier.dense", DenseActivation::tanh}, {"classifier.out_proj"}},
                        .complete = complete_mpnet},
              .weights = mpnet_weights(),
              .forward = mpnet_forward,
              .head = nn::decoder_head,
              .check = check_mpnet,
              .sample_config = kMpnetSample});
}
