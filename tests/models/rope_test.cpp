// Frequencies of rotary positions that no recorded model has.

#include "nn/rope.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace weft::rope_test {

// Llama 4 Scout has these factors: no wavelength is between the limits.
TEST(InverseFrequencies, AreKeptOrDividedWhereBothLimitsAreEqual) {
  RopeConfig plain;
  plain.theta = 500000;
  plain.rotary_dim = 128;
  RopeConfig scaled = plain;
  scaled.scaling.type = RopeScalingType::llama3;
  scaled.scaling.factor = 16;
  scaled.scaling.original_context_length = 8192;
  scaled.scaling.low_freq_factor = scaled.scaling.high_freq_factor = 1;
  const std::vector<float> wanted = nn::inverse_frequencies(plain, 1 << 20);
  const std::vector<float> found = nn::inverse_frequencies(scaled, 1 << 20);
  ASSERT_EQ(found.size(), wanted.size());
  int divided = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_long = 2 * std::numbers::pi / wanted[i] >= 8192;
    divided += is_long ? 1 : 0;
    EXPECT_EQ(found[i], is_long ? wanted[i] / 16 : wanted[i]) << i;
  }
  EXPECT_GT(divided, 0);
  EXPECT_LT(divided, 64);
  // A wavelength that is the limit itself.
  plain.theta = 1;
  scaled.theta = 1;
  scaled.scaling.low_freq_factor = scaled.scaling.high_freq_factor = 8192 / (2 * std::numbers::pi);
  for (const float frequency : nn::inverse_frequencies(scaled, 1 << 20)) EXPECT_TRUE(std::isfinite(frequency));
}

// A context that --max-model-len makes shorter changes nothing.
TEST(InverseFrequencies, OfDynamicScalingGrowAboveTheTrainedContextAlone) {
  RopeConfig plain;
  plain.theta = 10000;
  plain.rotary_dim = 32;
  RopeConfig scaled = plain;
  scaled.scaling.type = RopeScalingType::dynamic;
  scaled.scaling.factor = 2;
  scaled.scaling.original_context_length = 256;
  for (const std::int64_t context : {1, 60, 256})
    EXPECT_EQ(nn::inverse_frequencies(scaled, context), nn::inverse_frequencies(plain, context)) << context;
  plain.theta *= std::pow(3.0, 32.0 / 30);  // 2 * 512 / 256 - 1
  EXPECT_EQ(nn::inverse_frequencies(scaled, 512), nn::inverse_frequencies(plain, 512));
}

}  // namespace weft::rope_test
