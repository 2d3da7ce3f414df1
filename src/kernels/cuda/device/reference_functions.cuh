#pragma once

// Reference math (tensor/reference_math.h) as device code. A function that is declared for host and device is for both,
// even if its definition has no attributes; nvcc refuses a call of a function that is not declared here.

#if defined(__CUDACC__)
#include <cstdint>

namespace weft {

static constexpr __host__ __device__ std::uint32_t bits_of_float(float value);
static constexpr __host__ __device__ float float_of_bits(std::uint32_t bits);
static inline __host__ __device__ float reference_exp(float x);
static inline __host__ __device__ float reference_silu(float x);

}  // namespace weft
#endif

#include "tensor/reference_math.h"
