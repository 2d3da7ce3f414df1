#pragma once

// Sums and maxima over all threads of a block; every thread gets the result. Each may be called once in a kernel.

#include "kernels/cuda/device/arithmetic.cuh"
#include "kernels/cuda/device/platform.cuh"

namespace weft::cuda {

template <int threads, class Join>
WEFT_DEVICE float joined_over_block(float value, Join join) {
  constexpr int kWarps = threads / 32;
  WEFT_SHARED(float, of_warp, kWarps);
  WEFT_UNROLL
  for (unsigned distance = 16; distance > 0; distance /= 2) value = join(value, exchange(value, distance));
  if (thread_index() % 32 == 0) of_warp[thread_index() / 32] = value;
  wait_for_block();
  float result = of_warp[0];
  WEFT_UNROLL
  for (int warp = 1; warp < kWarps; ++warp) result = join(result, of_warp[warp]);
  return result;
}

struct AddValues {
  WEFT_DEVICE float operator()(float x, float y) const { return x + y; }
};
struct LargerValue {
  WEFT_DEVICE float operator()(float x, float y) const { return larger(x, y); }
};

// The device's own order: each thread's part, then a tree.
struct DeviceSum {
  // Adds elements of consecutive columns; all threads call it together. Each thread has `count` values, of which the
  // first `live` are added.
  template <int threads, int count>
  WEFT_DEVICE void add(const float* values, std::uint32_t live) {
    WEFT_UNROLL
    for (int i = 0; i < count; ++i)
      if (static_cast<std::uint32_t>(i) < live) sum_ += values[i];
  }
  template <int threads>
  WEFT_DEVICE float total() {
    return joined_over_block<threads>(sum_, AddValues{});
  }

 private:
  float sum_ = 0;
};

#if defined(WEFT_REFERENCE_KERNELS)
// The order of every other device: 64 partial sums, by column modulo 64, each in the order of columns; then a fixed
// tree.
struct ReferenceSum {
  static constexpr int kLanes = 64;

  template <int threads, int count>
  WEFT_DEVICE void add(const float* values, std::uint32_t live) {
    WEFT_SHARED(float, waiting, threads* count);
    static_assert(threads * count % kLanes == 0);
    for (int i = 0; i < count; ++i)
      waiting[thread_index() * count + i] = static_cast<std::uint32_t>(i) < live ? values[i] : 0.0f;
    WEFT_SHARED(std::uint32_t, counted, threads);
    counted[thread_index()] = live;
    wait_for_block();
    if (thread_index() < kLanes) {
      for (int i = static_cast<int>(thread_index()); i < threads * count; i += kLanes)
        if (static_cast<std::uint32_t>(i % count) < counted[i / count]) partial_ += waiting[i];
    }
    wait_for_block();
  }
  template <int threads>
  WEFT_DEVICE float total() {
    WEFT_SHARED(float, partial, kLanes);
    if (thread_index() < kLanes) partial[thread_index()] = partial_;
    wait_for_block();
    for (unsigned width = kLanes / 2; width > 0; width /= 2) {
      if (thread_index() < width) partial[thread_index()] = partial[thread_index()] + partial[thread_index() + width];
      wait_for_block();
    }
    return partial[0];
  }

 private:
  float partial_ = 0;
};
#endif

}  // namespace weft::cuda
