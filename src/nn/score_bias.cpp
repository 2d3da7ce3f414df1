#include "nn/score_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace weft::nn {

std::int64_t reach_of_biases(const ModelConfig& config) {
  return config.alibi_bias_max > 0 ? config.context_length : kFarthestBucket + 1;
}

std::vector<float> alibi_slopes(std::int64_t heads, double bias_max) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<float> slopes;
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto exponent = static_cast<double>(head < power ? 2 * (head + 1) : 2 * (head - power) + 1);
    slopes.push_back(static_cast<float>(std::exp2(-bias_max * exponent / static_cast<double>(2 * power))));
  }
  return slopes;
}

void fill_alibi(const ModelConfig& config, float* table) {
  const std::int64_t farthest = reach_of_biases(config) - 1;
  const auto factor = static_cast<float>(config.alibi_factor);
  for (const float slope : alibi_slopes(config.head_count, config.alibi_bias_max))
    for (std::int64_t distance = -farthest; distance <= farthest; ++distance)
      *table++ = -(slope * static_cast<float>(std::abs(distance))) * factor;
}

std::int64_t bucket_of_distance(std::int64_t distance, std::int64_t buckets) {
  const std::int64_t of_side = buckets / 2, single = of_side / 2, size = std::abs(distance);
  const std::int64_t first = distance > 0 ? of_side : 0;
  if (size < single) return first + size;
  // In f32, as models were trained: another precision could give a distance at a boundary another bucket.
  const float part = std::log(static_cast<float>(size) / static_cast<float>(single)) /
                     static_cast<float>(std::log(static_cast<double>(kFarthestBucket) / static_cast<double>(single)));
  const auto logarithmic = static_cast<std::int64_t>(part * static_cast<float>(of_side - single));
  return first + std::min(single + logarithmic, of_side - 1);
}

void fill_learned_biases(const ModelConfig& config, std::span<const float> of_buckets, float* table) {
  const std::int64_t buckets = config.distance_bucket_count, heads = config.head_count;
  CHECK(std::ssize(of_buckets) == buckets * heads, "{} biases for {} buckets of {} heads", of_buckets.size(), buckets,
        heads);
  const std::int64_t farthest = reach_of_biases(config) - 1;
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t distance = -farthest; distance <= farthest; ++distance)
      *table++ = of_buckets[static_cast<std::size_t>(bucket_of_distance(distance, buckets) * heads + head)];
}

}  // namespace weft::nn
