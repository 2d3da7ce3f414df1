#pragma once

// The parts that decoders share: the inputs of a step, the layers and the head.

#include <functional>
#include <string>
#include <vector>

#include "nn/builder.h"

namespace weft::nn {

// The inputs of a model's forward graph.
struct DecoderStep {
  Value ids;        // i64[s0]
  Value positions;  // i64[s0]
  Value slots;      // i64[s0]
  Value batch;
  Values pages;                         // donated, as ModelFacts::pages lists them; the updated pages after their layer
  std::vector<std::string> page_names;  // of `pages`
  // The pages named "kind.layer".
  Value& pages_of(const std::string& kind, int layer);
  Value rotary;          // f32[positions, rotary_dim]; absent if no layer uses it
  Value sliding_rotary;  // the same for layers with a window, if they have other positions
  Value score_bias;      // f32[heads, distances]; absent if the scores of attention have none
};
DecoderStep decoder_step(Builder& builder);

// The embeddings of the tokens: [s0, d], in the dtype of the residual stream, times config.embedding_scale.
Value embedded_tokens(Builder& builder, const Value& ids);

// x plus the rows of the tokens' positions in the table of learned positions; without x, plus the tokens' embeddings.
Value with_positions(Builder& builder, const DecoderStep& step, const Value& x);
Value embedded_tokens_and_positions(Builder& builder, const DecoderStep& step);

// x times the square root of its width, as Gemma's embeddings, or of another one. The root is rounded to the dtype of
// the residual stream, because training used the rounded value.
Value times_root_of_width(Builder& builder, const Value& x);
Value times_root(Builder& builder, const Value& x, std::int64_t width);

// One of the two halves of a layer: attention or feed-forward, [s0, d] -> [s0, d].
using LayerHalf = std::function<Value(const Value& x, int layer)>;

// Each of these applies all layers and the last norm to x [s0, d], and returns the results of a model's forward graph.
// A half's result is multiplied by config.residual_scale and added to the residual sum.
//   pre_norm_layers   a half takes the norm of the residual sum: attn_norm, ffn_norm
//   sandwich_layers   the same, and its result is normalized before it is added: post_attention_norm, post_ffw_norm
//   post_norm_layers  a half takes the residual sum itself, and its result is normalized as above
//   single_half_layers  a layer has one half, which takes the norm of the residual sum: attn_norm
//   parallel_layers   both halves take the same norm of the residual sum, attn_norm, or each has one: attn_norm,
//   ffn_norm
Values pre_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward);
Values single_half_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& half);
Values sandwich_layers(Builder& builder, DecoderStep& step, const Value& x, const LayerHalf& attention,
                       const LayerHalf& feed_forward);
Values post_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                        const LayerHalf& feed_forward);
Values parallel_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward);

// The results of a model's forward graph: the hidden state and the pages.
Values decoder_results(DecoderStep& step, const Value& hidden);

// A model's head graph: the logits of selected rows. It uses a separate head weight, or the embedding's weight, whose
// rows or columns are divided by their lengths if config.normalizes_head or normalizes_head_columns. The logits are
// multiplied by config.logit_scale, divided by config.logit_divisor and bounded by config.logit_softcap. A model whose
// tokens attend to later ones predicts none of them: its rows are those of the hidden state. With the weight
// output_projection, the head reads the product with it.
Values decoder_head(Builder& builder);

// UserError when the config asks for a mixture of experts and the architecture has none (ArchitectureFacts::experts).
void check_decoder(const ModelConfig& config);

}  // namespace weft::nn
