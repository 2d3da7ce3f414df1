#pragma once

// Statistics of measured values, defined as numpy defines them, whose functions vLLM's benchmarks call.

#include <vector>

namespace weft {

double mean(const std::vector<double>& values);  // 0 of none
// The population's standard deviation; 0 of no values.
double standard_deviation(const std::vector<double>& values);
// Interpolated linearly between the two nearest values; 0 of no values.
double percentile(std::vector<double> values, double percent);

// The percentiles of vLLM's startup and latency benchmarks.
inline constexpr int kLatencyPercents[] = {10, 25, 50, 75, 90, 99};

}  // namespace weft
