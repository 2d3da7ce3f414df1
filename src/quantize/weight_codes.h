#pragma once

// Converts a weight to codes and scales. The codes are those that the ops of the same formats compute for activations:
// the nearest code of x / scale, halves to even.

#include "parallel/thread_pool.h"
#include "tensor/tensor.h"

namespace weft {

struct CodesAndScales {
  Tensor codes;
  Tensor scales;
};

// The largest magnitude in an f32 tensor. UserError that names `where` if a number is not finite.
float largest_magnitude(const Tensor& weight, const std::string& where, ThreadPool& threads);

// Quantizes blocks of rows x columns of weight f32 [N, K]; the last ones may be short. scale = the block's largest
// magnitude / the largest code (f8e4m3 448, i8 127), and at least vLLM's smallest scale (D.2 of its behaviour: 1 / (448
// * 512), 1.19e-7).
//   -> dtype [N, K], f32 [ceil(N / rows), ceil(K / columns)]
CodesAndScales quantize_blocks(const Tensor& weight, DType dtype, std::int64_t rows, std::int64_t columns,
                               ThreadPool& threads);

// Quantizes to NVFP4 with a global scale (448 * 6 / the largest magnitude of all weights that share it): scale =
// global_scale * largest magnitude of 16 elements / 6 as f8e4m3, codes of x / (scale / global_scale). A block whose
// scale is 0 is all 0.
//   -> u8 [N, K / 2], the even element of each two in the low bits, f8e4m3 [N, K / 16]
CodesAndScales quantize_nvfp4(const Tensor& weight, float global_scale, ThreadPool& threads);

// Quantizes groups of `group` columns to integers of -8 to 7: scale = the group's largest magnitude / 7.5 as bf16,
// codes of x / scale plus 8. A group of zeros has compressed-tensors' scale for it, 2^-7.
//   -> i32 [N, K / 8], the first of eight columns in the lowest bits, bf16 [N, K / group]
CodesAndScales quantize_int4(const Tensor& weight, std::int64_t group, ThreadPool& threads);

// global_scale for values up to `magnitude`.
float nvfp4_global_scale(float magnitude);
// The one scale of fp8 codes for values up to `magnitude`.
float fp8_scale(float magnitude);

}  // namespace weft
