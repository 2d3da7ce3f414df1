#pragma once

// The calls of the linear family with the instruction set as an argument. Prepared kernels run them, and tests run them
// with vectors of their own. Also what the calls share.

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/kernel.h"
#include "tensor/device.h"

namespace weft::cpu {

void run_linear_int8(const LinearInt8Variant& variant, const KernelCall& call);
void run_linear(const LinearVariant& variant, const KernelCall& call);
void run_grouped_linear(const LinearVariant& variant, const KernelCall& call);
void run_grouped_linear_int8(const LinearInt8Variant& variant, const KernelCall& call);
void run_batched_linear(const LinearVariant& variant, const KernelCall& call);

const LinearVariant& linear_variant(CpuFeatures features);

// Bytes that a row of x takes as f32; 0 if x is f32.
std::int64_t wide_row_bytes(DType x, std::int64_t depth);

// Writes `rows` rows of x, which are `stride` elements apart, as f32 to rows of row_bytes.
void widen_rows(const LinearVariant& variant, const TensorView& x, std::int64_t rows, std::int64_t stride,
                std::byte* to, std::int64_t row_bytes, ThreadPool& threads);

}  // namespace weft::cpu
