#pragma once

// What kernels of this provider share: which matrices the library takes, and how a call becomes its product.

#include <optional>

#include "kernels/kernel.h"
#include "kernels/library_product.h"

namespace weft::cublaslt {

// The library's tensor cores read and write so much at once: where matrices, biases and scales of blocks begin, and of
// codes each row.
inline constexpr int kVectorBytes = 16;

Verdict runs_on_gpus(const DeviceDescription& device);

// Whether its GPU and its library multiply codes of fp8 with such scales.
Verdict multiplies_codes(const DeviceDescription& device, ProductScales scales);

// What the library wants of matrices of fp8 codes beyond takes_matrices: whole tiles of the weight, rows that begin
// at multiples of what tensor cores read at once, a bias of 16 bits.
Verdict takes_codes(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result);

inline bool is_sixteen_bits(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }
inline bool is_float(DType dtype) { return dtype == DType::f32 || is_sixteen_bits(dtype); }

// Rows side by side of x and the weight, of one dtype; a contiguous result, and a bias of its dtype.
Verdict takes_matrices(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result);

// x [..., K], weight [N, K], bias [N] or absent, result [..., N].
LibraryProduct product_of(const TensorView& x, const TensorView& weight, const TensorView& bias,
                          const TensorView& result);

// Gives it to the call's queue; on the host, at once, where there is none. Nothing for no rows.
void run_product(const LibraryProduct& product, const KernelCall& call);

}  // namespace weft::cublaslt
