#pragma once

// Several residual streams, of which the layers compute the first one (AltUp of Gemma 3n). Before a layer, each stream
// is predicted from all of them; after it, each is corrected by what the layer made of the first one. The coefficients
// depend on the token. config.stream_count is the number of streams.

#include "nn/builder.h"
#include "nn/decoder_weights.h"

namespace weft::nn {

// The weights: altup_router, altup_router_norm, altup_predict_coef and altup_correct_coef of each layer, and the stacks
// altup_proj and altup_unembd_proj of all streams but the first one.
void add_residual_streams(WeightTable& weights);

// The streams of the embeddings x [s0, d]: x itself, and projections of it that have the same root mean square.
Values split_streams(Builder& builder, const Value& x);

Values predicted_streams(Builder& builder, const Values& streams, int layer);

// `computed` is the layer's result for the first of the predicted streams.
Values corrected_streams(Builder& builder, const Values& predicted, const Value& computed, int layer);

// The mean of the streams, after each but the first one is projected and has the root mean square of the first one.
Value joined_streams(Builder& builder, const Values& streams);

// UserError, `[architecture] ...`, unless there are at least two streams and the first one is the active one.
void check_residual_streams(const ModelConfig& config);

}  // namespace weft::nn
