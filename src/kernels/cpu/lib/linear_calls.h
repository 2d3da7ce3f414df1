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

LinearVariant linear_variant(const DeviceDescription& device);
// The same for linear_bf16 and grouped_linear_bf16.
LinearVariant rounding_variant(const DeviceDescription& device);
// Whether they read this weight.
Verdict rounded_weight_verdict(const Meta& weight);

// Whether rows of this dtype are multiplied by this weight as bf16.
bool multiplies_bfloats(const LinearVariant& variant, DType x, DType weight, std::int64_t depth);

// Bytes of scratch for a row of x that is widened to f32; 0 if it is not.
std::int64_t wide_row_bytes(const LinearVariant& variant, DType x, DType weight, std::int64_t depth);

// The rows of a call as its products read them: bf16, or f32.
struct LinearRows {
  const std::byte* values;
  std::int64_t stride;  // elements
  std::int64_t depth;
  bool is_bfloat;
  std::int64_t limit;  // the largest number of rows of multiply_panel
};
// `rows` rows of x, which are `stride` elements apart. If they are widened, they are written to `to`.
LinearRows linear_rows(const LinearVariant& variant, const TensorView& x, DType weight, std::int64_t rows,
                       std::int64_t stride, std::byte* to, ThreadPool& threads);

// Multiplies rows [first, first + count) by a panel.
void multiply_panel(const LinearVariant& variant, PanelKind kind, const std::byte* panel, const LinearRows& rows,
                    std::int64_t first, std::int64_t count, const PanelOutput& output);

}  // namespace weft::cpu
