#pragma once

// Access to global memory. All accesses use these functions, so that the emulator can check alignment and bounds and
// count sectors.

#include "kernels/cuda/device/platform.cuh"
#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/block_sizes.h"

namespace weft::cuda {

struct alignas(16) FourWords {
  std::uint32_t word[4];
};
struct alignas(8) TwoWords {
  std::uint32_t word[2];
};

// 16 bytes that no thread reads again: they are not kept in the first-level cache.
WEFT_DEVICE FourWords load_once(const void* from WEFT_SITE) {
#if defined(__CUDACC__)
  FourWords to;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3])
      : "l"(from));
  return to;
#else
  note_reading(from, sizeof(FourWords), site);
  return *static_cast<const FourWords*>(from);
#endif
}

template <class T>
WEFT_DEVICE T load(const T* from WEFT_SITE) {
#if !defined(__CUDACC__)
  note_reading(from, sizeof(T), site);
#endif
  return *from;
}

template <class T>
WEFT_DEVICE void store(T* to, T value WEFT_SITE) {
#if !defined(__CUDACC__)
  note_writing(to, sizeof(T), site);
#endif
  *to = value;
}

// `count` words, 1, 2 or 4, in one access.
template <int count>
WEFT_DEVICE void store_words(void* to, const std::uint32_t* words WEFT_SITE) {
  if constexpr (count == 1) {
    store(static_cast<std::uint32_t*>(to), words[0] WEFT_PASS_SITE);
  } else if constexpr (count == 2) {
    store(static_cast<TwoWords*>(to), TwoWords{words[0], words[1]} WEFT_PASS_SITE);
  } else {
    static_assert(count == 4);
    store(static_cast<FourWords*>(to), FourWords{words[0], words[1], words[2], words[3]} WEFT_PASS_SITE);
  }
}

// dividend / by.divisor, for dividends below 2^31.
WEFT_DEVICE std::uint32_t quotient(std::uint32_t dividend, const Divisor& by) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(dividend) * by.multiplier >> (31 + by.shift));
}

// i * j in 64 bits.
WEFT_DEVICE std::uint64_t product(std::uint32_t i, std::uint32_t j) { return static_cast<std::uint64_t>(i) * j; }

}  // namespace weft::cuda
