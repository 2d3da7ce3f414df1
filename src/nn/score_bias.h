#pragma once

// The biases of attention's scores by head and distance, as the op attention reads them: f32[heads, 2 reach - 1], of
// which the middle column is of distance 0, and the columns before it are of keys before the query.

#include <span>
#include <vector>

#include "io/model_config.h"

namespace weft::nn {

// All distances within a context of a model with ALiBi, or up to the one from which learned biases are equal.
std::int64_t reach_of_biases(const ModelConfig& config);

// The slopes of ALiBi. Of n heads, a power of two, slope k is 2^(-bias_max k / n), for k from 1 on. Other numbers of
// heads have the slopes of the next lower power n, and then every second one of 2 n heads, from the first on.
std::vector<float> alibi_slopes(std::int64_t heads, double bias_max);

// Writes the biases of ALiBi: the distance times the slope of the head, negative.
void fill_alibi(const ModelConfig& config, float* table);

// The bucket of the distance from a query to a key, as in T5's encoders: half of the buckets are of later keys. Half of
// the rest have one distance each, and the others are logarithmic up to kFarthestBucket.
inline constexpr std::int64_t kFarthestBucket = 128;
std::int64_t bucket_of_distance(std::int64_t distance, std::int64_t buckets);

// Writes the biases of the distances' buckets, from those of all buckets [buckets, heads].
void fill_learned_biases(const ModelConfig& config, std::span<const float> of_buckets, float* table);

}  // namespace weft::nn
