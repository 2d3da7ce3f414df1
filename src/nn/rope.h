#pragma once

// Rotary position tables, as vLLM's get_rope makes them: float32 inverse frequencies, float32 angles.

#include <span>
#include <vector>

#include "io/model_config.h"

namespace weft::nn {

// 1 / theta^(2 i / rotary_dim) with the scaling applied, [rotary_dim / 2]. Each frequency is divided by its element of
// `factors` (GGUF's rope_freqs tensor); empty for none. `max_position` is used as the trained context when the scaling
// does not state it.
std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t max_position,
                                       std::span<const float> factors = {});

// Whether a context of this length has the second of longrope's two sets of factors. As in llama.cpp and vLLM, and
// unlike transformers, one choice is made for the longest sequence that may come.
bool has_long_factors(const RopeScaling& scaling, std::int64_t max_position);

// The factor of all cosines and sines: 1 except for yarn and longrope.
float rotary_magnitude(const RopeConfig& rope, std::int64_t max_position);

// Writes positions [begin, end) of the table to `rows`. Each row has rotary_dim / 2 cosines, then rotary_dim / 2 sines.
void fill_rotary_rows(std::span<const float> inverse_frequencies, float magnitude, std::int64_t begin, std::int64_t end,
                      float* rows);

// Writes the factor of queries at each position: 1 + beta ln(1 + floor(position / original_context_length)), or that of
// layers without rotary positions.
void fill_query_scales(const ModelConfig& config, std::int64_t positions, float* scales);

}  // namespace weft::nn
