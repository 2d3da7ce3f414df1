#pragma once

// House mathematics (tensor/house_math.h) as device code. A function that was declared for both sides is for both, also
// where its definition says nothing of sides; nvcc refuses a call of one that is not declared here.

#if defined(__CUDACC__)
#include <cstdint>

namespace weft {

static inline __host__ __device__ std::uint32_t bits_of_float(float value);
static inline __host__ __device__ float float_of_bits(std::uint32_t bits);
static inline __host__ __device__ float house_exp(float x);
static inline __host__ __device__ float house_silu(float x);

}  // namespace weft
#endif

#include "tensor/house_math.h"
