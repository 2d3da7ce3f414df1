#pragma once

// What the halves of recurrent layers have in common.

#include <string>

#include "nn/decoder.h"

namespace weft::nn {

// The convolution of x [s0, channels] over the tokens of each sequence, by weights `name` and, if there is one,
// `name`.bias. It reads and updates the layer's pages.
Value convolved(Builder& builder, DecoderStep& step, const Value& x, const std::string& name, int layer);

// A vector of the layer, f32 or as its row of the table says.
Value vector_of(Builder& builder, const std::string& name, int layer);

// x [s0, heads * width] with each head as a row.
Value by_heads(const Value& x, std::int64_t heads, std::int64_t width);

// The shape of a convolution's weight: folders have [channels, 1, taps], GGUF files [channels, taps].
std::vector<std::int64_t> shape_of_taps(const ModelConfig& config);

// Whether the layer has this kind of state.
bool has_recurrent_kind(const ModelConfig& config, int layer, RecurrentKind kind);

}  // namespace weft::nn
