// Coverage of g++ objects for libFuzzer. g++ calls __sanitizer_cov_trace_pc at every edge; libFuzzer ignores that call
// but reads any bytes in the section __libfuzzer_extra_counters after each input. The linker's --wrap brings the calls
// here, and each is counted under a hash of the place it came from.

#include <cstdint>

namespace {

constexpr int kCounterBits = 17;
__attribute__((section("__libfuzzer_extra_counters"), used)) std::uint8_t edge_counters[1u << kCounterBits];

}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage)) void
__wrap___sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& counter = edge_counters[(place * 0x9E3779B97F4A7C15u) >> (64 - kCounterBits)];
  if (counter != 0xFF) ++counter;
}

// Comparisons of floats, which g++ reports and libFuzzer does not take.
extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_cmpd(double, double) {}
