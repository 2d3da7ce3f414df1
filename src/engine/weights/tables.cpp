// The part of Weights that computes tables by position: rotary positions, the factors of queries, and the biases of
// scores.

#include <cmath>

#include "base/error.h"
#include "engine/weights/weights.h"
#include "nn/rope.h"
#include "nn/score_bias.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::int64_t kRows = 256;  // positions per chunk

const RopeConfig& rope_of_table(const ModelConfig& config, WeightRole role) {
  return role == WeightRole::sliding_rotary ? config.sliding_rope.value() : config.rope;
}

}  // namespace

Meta Weights::table_meta(WeightRole role) const {
  const ModelConfig& config = facts_.config;
  if (role == WeightRole::alibi) return score_bias_meta();
  const std::int64_t columns = role == WeightRole::query_scale ? 1 : rope_of_table(config, role).rotary_dim;
  return Meta::tensor(DType::f32, {config.context_length, columns});
}

// The divisors of the frequencies; empty for none.
std::vector<float> Weights::frequency_factors(const RopeConfig& rope) const {
  std::string name = rope.frequency_factors;
  if (rope.scaling.type == RopeScalingType::longrope) {
    const bool is_long = nn::has_long_factors(rope.scaling, facts_.config.context_length);
    const std::vector<double>& own = is_long ? rope.scaling.long_factors : rope.scaling.short_factors;
    if (!own.empty()) return {own.begin(), own.end()};
    name = is_long ? kLongFactors : kShortFactors;
  }
  if (name.empty()) return {};
  const Tensor& tensor = checkpoint_.tensor(name);
  USER_CHECK(tensor.meta == Meta::tensor(DType::f32, {rope.rotary_dim / 2}), "[{}] must be f32[{}], but is {}", name,
             rope.rotary_dim / 2, tensor.meta.text());
  return {tensor.as<float>(), tensor.as<float>() + rope.rotary_dim / 2};
}

Tensor Weights::table(WeightRole role) const {
  const ModelConfig& config = facts_.config;
  const std::int64_t positions = config.context_length;
  Tensor table = Tensor::empty(table_meta(role));
  if (role == WeightRole::query_scale) {
    nn::fill_query_scales(config, positions, table.as<float>());
    return table;
  }
  if (role == WeightRole::alibi) {
    nn::fill_alibi(config, table.as<float>());
    return table;
  }
  const RopeConfig& rope = rope_of_table(config, role);
  const std::vector<float> frequencies = nn::inverse_frequencies(rope, positions, frequency_factors(rope));
  const float magnitude = nn::rotary_magnitude(rope, positions);
  context_.threads->run((positions + kRows - 1) / kRows, [&](std::int64_t chunk, int) {
    const std::int64_t begin = chunk * kRows, end = std::min(positions, begin + kRows);
    nn::fill_rotary_rows(frequencies, magnitude, begin, end, table.as<float>() + begin * rope.rotary_dim);
  });
  return table;
}

Meta Weights::score_bias_meta() const {
  const ModelConfig& config = facts_.config;
  return Meta::tensor(DType::f32, {config.head_count, 2 * nn::reach_of_biases(config) - 1});
}

Tensor Weights::distance_biases(const std::string& key) const {
  Tensor table = Tensor::empty(score_bias_meta());
  const Tensor& stored = checkpoint_.tensor(key);
  const std::int64_t count = element_count(stored.meta.shape).number();
  const Tensor of_buckets = Tensor::empty(Meta::tensor(DType::f32, {count}));
  convert_row(stored.meta.dtype, stored.data(), DType::f32, of_buckets.data(), count);
  nn::fill_learned_biases(facts_.config, {of_buckets.as<float>(), static_cast<std::size_t>(count)}, table.as<float>());
  return table;
}

}  // namespace weft
