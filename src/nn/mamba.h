#pragma once

// Mamba 1: the half of a recurrent layer (io/model_config.h: RecurrentConfig), and its weights.

#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft::nn {

// Maps the norm of the residual sum, x [s0, d], to [s0, d]. One projection of x has what goes through a convolution and
// silu, and the gates. A second projection, of the first, has what becomes the steps, then the inputs B and the outputs
// C of the state; each of the three is normalized if the config says so. selective_scan is the recurrence of Mamba (Gu
// and Dao, 2023). What went through the convolution, times D, is added to its result, which is multiplied by silu of
// the gates and projected.
//   ssm_in, ssm_conv1d, ssm_x, ssm_dt, ssm_a, ssm_d, ssm_out, and biases of all but ssm_x
Value mamba_mixer(Builder& builder, DecoderStep& step, const Value& x, int layer);

// `module` is the layer's module in folders, with {} for the layer.
void add_mamba(WeightTable& weights, const std::string& module = "model.layers.{}.mamba.");

}  // namespace weft::nn
