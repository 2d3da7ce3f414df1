#pragma once

// Rotary position tables, as vLLM's get_rope makes them: float32 inverse frequencies, float32 angles.

#include <span>
#include <vector>

#include "io/model_config.h"

namespace weft::nn {

// 1 / theta^(2 i / rotary_dim) with the scaling applied, [rotary_dim / 2]. `factors` divides them one by one (GGUF's
// rope_freqs tensor), empty for none. `max_position` is the trained context where the scaling states none.
std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t max_position,
                                       std::span<const float> factors = {});

// By what cosines and sines are multiplied: 1 but for yarn.
float rotary_magnitude(const RopeConfig& rope);

// Positions [begin, end) of the table, each rotary_dim / 2 cosines, then as many sines, into `rows`.
void fill_rotary_rows(std::span<const float> inverse_frequencies, float magnitude, std::int64_t begin, std::int64_t end,
                      float* rows);

}  // namespace weft::nn
