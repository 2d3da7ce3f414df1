#include "apps/cli/bench_roof.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include <immintrin.h>

namespace weft {
namespace {

// Short ones, so that some find a busy machine idle.
constexpr int kReadTries = 10, kComputeTries = 40;
constexpr std::int64_t kTurns = 40'000;
constexpr std::int64_t kBeyondCaches = 96 << 20;
// Independent sums: more than the latency of a multiply-add times the units that compute it.
constexpr int kChains = 12;

using Words = std::uint64_t __attribute__((vector_size(16)));

std::uint64_t sum_of(const Words* begin, const Words* end) {
  Words sums[4] = {};
  for (; end - begin >= 4; begin += 4)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] += begin[i];
  const Words all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return all[0] + all[1];
}

double read_bytes(ThreadPool& threads, const std::function<double()>& clock) {
  constexpr std::int64_t kParts = 64;
  const std::int64_t part = kBeyondCaches / kParts / static_cast<std::int64_t>(sizeof(Words));
  const std::vector<Words> memory(static_cast<std::size_t>(part * kParts), Words{1, 2});
  std::atomic<std::uint64_t> total{0};
  double best = 0;
  for (int i = 0; i < kReadTries; ++i) {
    const double start = clock();
    threads.run(kParts, [&](std::int64_t index, int) {
      total += sum_of(memory.data() + index * part, memory.data() + (index + 1) * part);
    });
    const double seconds = std::max(clock() - start, 1e-9);
    best = std::max(best, static_cast<double>(memory.size() * sizeof(Words)) / seconds);
  }
  return best;
}

// Each gives something that depends on every multiply-add, so that none is left out.
using Chains = float (*)(float factor);

float chains_of_four(float factor) {
  __m128 sums[kChains];
  for (__m128& sum : sums) sum = _mm_set1_ps(factor);
  const __m128 times = _mm_set1_ps(factor);
  for (std::int64_t turn = 0; turn < kTurns; ++turn)
#pragma GCC unroll 12
    for (__m128& sum : sums) sum = _mm_add_ps(_mm_mul_ps(sum, times), times);
  for (const __m128& sum : sums) sums[0] = _mm_add_ps(sums[0], sum);
  return _mm_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float chains_of_eight(float factor) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(factor);
  const __m256 times = _mm256_set1_ps(factor);
  for (std::int64_t turn = 0; turn < kTurns; ++turn)
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, times, times);
  for (const __m256& sum : sums) sums[0] = _mm256_add_ps(sums[0], sum);
  return _mm256_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f"))) float chains_of_sixteen(float factor) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(factor);
  const __m512 times = _mm512_set1_ps(factor);
  for (std::int64_t turn = 0; turn < kTurns; ++turn)
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, times, times);
  for (const __m512& sum : sums) sums[0] = _mm512_add_ps(sums[0], sum);
  return _mm512_cvtss_f32(sums[0]);
}

double multiply_adds(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock) {
  const bool widest = features >= CpuFeatures::avx512, wide = features >= CpuFeatures::avx2;
  const Chains chains = widest ? chains_of_sixteen : wide ? chains_of_eight : chains_of_four;
  const double lanes = widest ? 16 : wide ? 8 : 4;
  volatile float factor = 0.5f;  // the sums come near 1 and stay there
  std::atomic<float> kept{0};
  double best = 0;
  for (int i = 0; i < kComputeTries; ++i) {
    const double start = clock();
    threads.run(threads.threads(), [&](std::int64_t, int) { kept = chains(factor); });
    const double seconds = std::max(clock() - start, 1e-9);
    best = std::max(best, 2 * lanes * kChains * static_cast<double>(kTurns) * threads.threads() / seconds);
  }
  return best;
}

}  // namespace

double MachineRoof::percent(double bytes, double operations, double seconds) const {
  return 100 * std::max(bytes / read_bytes, operations / multiply_adds) / seconds;
}

MachineRoof measure_roof(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock) {
  return {.read_bytes = read_bytes(threads, clock), .multiply_adds = multiply_adds(threads, features, clock)};
}

}  // namespace weft
