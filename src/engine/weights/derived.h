#pragma once

// Weights as graphs read them, computed from those that a checkpoint stores.

#include "io/quantized_weight.h"
#include "tensor/tensor.h"

namespace weft {

Tensor converted(const Tensor& tensor, DType dtype);

// In place, of f32: x + 1, and -exp(x).
void add_one(Tensor& tensor);
void take_minus_exp(Tensor& tensor);

// The taps of a convolution of single channels, stored as [channels, .., taps] -> f32 [taps, channels].
Tensor taps_of(const Tensor& weight);

// For each row one divided by its length (1e-12 at least, as in torch's normalize()) -> f32 [rows].
Tensor inverse_lengths_of(const WeightRows& rows);
// The same for each column (its length plus 1e-7, as the publisher of Ling divides) -> f32 [columns].
Tensor inverse_column_lengths_of(const WeightRows& rows);

}  // namespace weft
