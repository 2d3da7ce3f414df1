#include "apps/cli/measured_peaks.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include <unistd.h>

#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft {
namespace {

// Short ones, so that some find a busy machine idle.
constexpr int kReadTries = 10, kComputeTries = 40;
constexpr std::int64_t kOperations = 15'000'000;  // of a try and a thread
constexpr std::int64_t kBeyondCaches = 96 << 20;

using WideWords = std::uint64_t __attribute__((vector_size(16)));

std::uint64_t sum_of(const WideWords* begin, const WideWords* end) {
  WideWords sums[4] = {};
  for (; end - begin >= 4; begin += 4)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] += begin[i];
  const WideWords all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return all[0] + all[1];
}

double read_bytes(ThreadPool& threads, const std::function<double()>& clock) {
  constexpr std::int64_t kParts = 64;
  const std::int64_t part = kBeyondCaches / kParts / static_cast<std::int64_t>(sizeof(WideWords));
  const std::vector<WideWords> memory(static_cast<std::size_t>(part * kParts), WideWords{1, 2});
  std::atomic<std::uint64_t> total{0};
  double best = 0;
  for (int i = 0; i < kReadTries; ++i) {
    const double start = clock();
    threads.run(kParts, [&](std::int64_t index, int) {
      total += sum_of(memory.data() + index * part, memory.data() + (index + 1) * part);
    });
    const double seconds = std::max(clock() - start, 1e-9);
    best = std::max(best, static_cast<double>(memory.size() * sizeof(WideWords)) / seconds);
  }
  return best;
}

double operations_of(const cpu::MultiplyAddChains& chains, ThreadPool& threads, const std::function<double()>& clock) {
  std::atomic<float> kept{0};
  const std::int64_t turns = kOperations / chains.operations;
  double best = 0;
  for (int i = 0; i < kComputeTries; ++i) {
    const double start = clock();
    threads.run(threads.threads(), [&](std::int64_t, int) { kept = chains.run(turns); });
    const double seconds = std::max(clock() - start, 1e-9);
    best = std::max(best, static_cast<double>(chains.operations * turns * threads.threads()) / seconds);
  }
  return best;
}

}  // namespace

double MeasuredPeaks::operations_of(DType operand) const {
  constexpr std::int64_t kElements = 64;  // whole blocks of every dtype
  const std::int64_t bits = 8 * bytes_of(operand, kElements) / kElements;
  return bits <= 8 ? operations_of_8_bits : bits <= 16 ? operations_of_16_bits : operations;
}

double MeasuredPeaks::percent(double bytes, double count, DType operand, double seconds) const {
  return 100 * std::max(bytes / read_bytes, count / operations_of(operand)) / seconds;
}

double measure_clock_rate(const std::function<double()>& clock) {
  constexpr std::int64_t kRounds = 1'000'000;
  volatile std::uint64_t first = 0x9e3779b97f4a7c15, second = 0xd1b54a32d192ed03;  // nothing the compiler knows
  double best = 0;
  for (int i = 0; i < kComputeTries; ++i) {
    const std::uint64_t mask = first, summand = second;
    std::uint64_t value = 0;
    const double start = clock();
    for (std::int64_t k = 0; k < kRounds; ++k)
      value = (value ^ mask) + summand;  // two cycles, each waits for the other
    first = value;
    best = std::max(best, 2.0 * kRounds / std::max(clock() - start, 1e-9));
  }
  return best;
}

std::int64_t shared_cache_bytes() {
  return std::max<std::int64_t>({::sysconf(_SC_LEVEL4_CACHE_SIZE), ::sysconf(_SC_LEVEL3_CACHE_SIZE), 0});
}

MeasuredPeaks measure_peaks(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock) {
  const cpu::PeakChains chains = cpu::peak_chains(features);
  const double of_floats = operations_of(chains.floats, threads, clock);
  return {.read_bytes = read_bytes(threads, clock),
          .operations = of_floats,
          .operations_of_16_bits = std::max(of_floats, operations_of(chains.bfloats, threads, clock)),
          .operations_of_8_bits = operations_of(chains.integers, threads, clock)};
}

}  // namespace weft
