#pragma once

// Multi-head latent attention (DeepSeek V2). A token's keys and values of all heads are linear in one latent vector.
// The pages have that vector and the rotated part of the key, which all heads share: [r rotated, c latent] as key and
// the same numbers as value. Instead of computing keys and values from the latents, queries are mapped into the space
// of latents before attention, and its results out of it.

#include "nn/decoder.h"

namespace weft::nn {

// Attention of a layer, [s0, d] -> [s0, d].
Value latent_attention(Builder& builder, DecoderStep& step, const Value& x, int layer);

}  // namespace weft::nn
