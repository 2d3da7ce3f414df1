#pragma once

// The common part of this provider's kernels: which matrices the library supports, and the LibraryProduct of a call.

#include <optional>

#include "kernels/kernel.h"
#include "kernels/library_product.h"

namespace weft::cublaslt {

// The bytes that the library's tensor cores read and write at once. Matrices, biases and scales of blocks begin at
// multiples of it, and so does each row of codes.
inline constexpr int kVectorBytes = 16;

Verdict runs_on_gpus(const DeviceDescription& device);

// Whether the device's GPU and library multiply fp8 codes with such scales.
Verdict multiplies_codes(const DeviceDescription& device, ProductScales scales);

// Checks takes_matrices and the library's further requirements on matrices of fp8 codes: whole tiles of the weight,
// rows that begin at multiples of kVectorBytes, and a bias of 16 bits.
Verdict takes_codes(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result);

inline bool is_sixteen_bits(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }
inline bool is_float(DType dtype) { return dtype == DType::f32 || is_sixteen_bits(dtype); }

// Whether the library supports these matrices: x and the weight have contiguous rows and one dtype, the result is
// contiguous, and the bias has the result's dtype.
Verdict takes_matrices(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result);

// x [..., K], weight [N, K], bias [N] or absent, result [..., N].
LibraryProduct product_of(const TensorView& x, const TensorView& weight, const TensorView& bias,
                          const TensorView& result);

// Adds the product to the call's queue. Without a queue the host computes it at once. Does nothing if there are no
// rows.
void run_product(const LibraryProduct& product, const KernelCall& call);

}  // namespace weft::cublaslt
