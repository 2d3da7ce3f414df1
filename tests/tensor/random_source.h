#pragma once

// Numbers for property tests: the same ones on every run and machine, so that a failure is named by its case number.

#include <cstdint>
#include <random>

namespace weft {

class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  // In [lo, hi].
  std::int64_t integer(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(hi - lo + 1));
  }
  bool coin() { return integer(0, 1) == 1; }
  // In [lo, hi).
  float real(float lo, float hi) { return lo + (hi - lo) * static_cast<float>(engine_() >> 40) * 0x1p-24f; }

 private:
  std::mt19937_64 engine_;  // its sequence is fixed by the standard
};

}  // namespace weft
