#pragma once

#include "nn/decoder_weights.h"

namespace weft::nn {

// Replaces the weights of attention by those of latent attention (nn/latent_attention.h), with DeepSeek's names.
void replace_by_latent_attention(WeightTable& weights);

}  // namespace weft::nn
