#pragma once

// An array of words in shared memory that is written and read as vectors.

#include "kernels/cuda/device/memory.cuh"

#if defined(__CUDACC__)
#define WEFT_SHARED_WORDS(name, count) __shared__ __align__(16) std::uint32_t name[count]
#else
#define WEFT_SHARED_WORDS(name, count) WEFT_SHARED(std::uint32_t, name, count)
#endif

namespace weft::cuda {

// `place` must be a multiple of 4.
template <class Words>
WEFT_DEVICE void store_four(Words& words, std::uint32_t place, const FourWords& value) {
#if defined(__CUDACC__)
  *reinterpret_cast<FourWords*>(words + place) = value;
#else
  for (std::uint32_t i = 0; i < 4; ++i) words[place / 4 * 4 + i] = value.word[i];
#endif
}

// `place` must be even.
template <class Words>
WEFT_DEVICE TwoWords load_two(Words& words, std::uint32_t place) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const TwoWords*>(words + place);
#else
  return {words[place], words[place + 1]};
#endif
}

}  // namespace weft::cuda
