#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace weft::nn {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

std::vector<float> plain_frequencies(double theta, std::int64_t rotary_dim) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < rotary_dim; i += 2)
    frequencies.push_back(1.0f /
                          std::pow(static_cast<float>(theta), static_cast<float>(i) / static_cast<float>(rotary_dim)));
  return frequencies;
}

// Llama 3: wavelengths above the low-frequency limit are stretched, wavelengths below the high-frequency limit are
// kept, and wavelengths between the limits are blended. In Llama 4 Scout the limits are equal.
void scale_llama3(std::vector<float>& frequencies, const RopeScaling& scaling) {
  const double original = static_cast<double>(scaling.original_context_length);
  const double low_wavelength = original / scaling.low_freq_factor,
               high_wavelength = original / scaling.high_freq_factor;
  for (float& frequency : frequencies) {
    const double wavelength = kTwoPi / frequency;
    if (wavelength < high_wavelength) continue;
    if (wavelength > low_wavelength || low_wavelength == high_wavelength) {
      frequency = static_cast<float>(frequency / scaling.factor);
      continue;
    }
    const double smooth =
        (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
    frequency = static_cast<float>((1 - smooth) * frequency / scaling.factor + smooth * frequency);
  }
}

// YaRN (Peng et al., 2023): the dimension whose angle makes `rotations` full rotations over the trained context.
double yarn_dimension(double rotations, const RopeConfig& rope) {
  const double context = static_cast<double>(rope.scaling.original_context_length);
  return static_cast<double>(rope.rotary_dim) * std::log(context / (rotations * kTwoPi)) / (2 * std::log(rope.theta));
}

void scale_yarn(std::vector<float>& frequencies, const RopeConfig& rope) {
  double low = yarn_dimension(rope.scaling.beta_fast, rope), high = yarn_dimension(rope.scaling.beta_slow, rope);
  if (rope.scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.rotary_dim - 1));
  if (low == high) high += 0.001;  // avoids a division by zero, as in the paper's code
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double extrapolated = frequencies[i], interpolated = frequencies[i] / rope.scaling.factor;
    frequencies[i] = static_cast<float>(interpolated * ramp + extrapolated * (1 - ramp));
  }
}

// NTK-aware scaling: returns a larger base, from a fixed alpha or for `factor` times the trained context.
double dynamic_theta(const RopeConfig& rope, std::int64_t max_position) {
  const double dim = static_cast<double>(rope.rotary_dim);
  double growth = 0;
  if (rope.scaling.alpha) {
    growth = *rope.scaling.alpha;
  } else {
    const double trained = static_cast<double>(
        rope.scaling.original_context_length > 0 ? rope.scaling.original_context_length : max_position);
    // A context below the trained one has the trained frequencies.
    const double context = std::max(static_cast<double>(max_position), trained);
    growth = rope.scaling.factor * context / trained - (rope.scaling.factor - 1);
  }
  return rope.theta * std::pow(growth, dim / (dim - 2));
}

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

}  // namespace

std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t max_position,
                                       std::span<const float> factors) {
  const RopeScaling& scaling = rope.scaling;
  const double theta = scaling.type == RopeScalingType::dynamic ? dynamic_theta(rope, max_position) : rope.theta;
  std::vector<float> frequencies = plain_frequencies(theta, rope.rotary_dim);
  USER_CHECK(factors.empty() || factors.size() == frequencies.size(), "[rope] wanted {} frequency factors, but got {}",
             frequencies.size(), factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) frequencies[i] /= factors[i];
  if (scaling.type == RopeScalingType::linear || scaling.type == RopeScalingType::proportional)
    for (float& frequency : frequencies) frequency = static_cast<float>(frequency / scaling.factor);
  if (scaling.type == RopeScalingType::llama3) scale_llama3(frequencies, scaling);
  if (scaling.type == RopeScalingType::yarn) scale_yarn(frequencies, rope);
  if (scaling.type == RopeScalingType::proportional) {
    const double rotated = scaling.rotated_part * static_cast<double>(frequencies.size());
    std::fill(frequencies.begin() + static_cast<std::ptrdiff_t>(rotated), frequencies.end(), 0.0f);
  }
  if (rope.is_reversed)
    for (float& frequency : frequencies) frequency = -frequency;
  return frequencies;
}

bool has_long_factors(const RopeScaling& scaling, std::int64_t max_position) {
  return max_position > scaling.original_context_length;
}

float rotary_magnitude(const RopeConfig& rope, std::int64_t max_position) {
  const RopeScaling& scaling = rope.scaling;
  if (scaling.type != RopeScalingType::yarn && scaling.type != RopeScalingType::longrope) return 1;
  const auto& own = has_long_factors(scaling, max_position) ? scaling.long_magnitude : scaling.short_magnitude;
  if (own) return static_cast<float>(*own);
  if (scaling.attention_factor) return static_cast<float>(*scaling.attention_factor);
  if (scaling.mscale.value_or(0) != 0 && scaling.mscale_all_dim.value_or(0) != 0)
    return static_cast<float>(yarn_mscale(scaling.factor, *scaling.mscale) /
                              yarn_mscale(scaling.factor, *scaling.mscale_all_dim));
  return static_cast<float>(yarn_mscale(scaling.factor, 1.0));
}

void fill_rotary_rows(std::span<const float> frequencies, float magnitude, std::int64_t begin, std::int64_t end,
                      float* rows) {
  const std::size_t half = frequencies.size();
  for (std::int64_t position = begin; position < end; ++position, rows += 2 * half) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<float>(position) * frequencies[i];
      rows[i] = static_cast<float>(std::cos(angle)) * magnitude;
      rows[half + i] = static_cast<float>(std::sin(angle)) * magnitude;
    }
  }
}

void fill_query_scales(const ModelConfig& config, std::int64_t positions, float* scales) {
  const bool is_unrotated = config.scales_unrotated_queries;
  const std::int64_t length =
      is_unrotated ? config.unrotated_query_length : config.rope.scaling.original_context_length;
  const double beta = is_unrotated ? config.unrotated_query_scale : config.rope.query_scale_beta;
  const std::int64_t first = is_unrotated ? 1 : 0;
  for (std::int64_t i = 0; i < positions; ++i)
    scales[i] = static_cast<float>(1 + beta * std::log1p(static_cast<double>((i + first) / length)));
}

}  // namespace weft::nn
