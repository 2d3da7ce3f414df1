#pragma once

// What kernels share that end in a quantization: which op it is, what of it they support, and its task. In calls that
// begin with another op, that op's operands come first, then the tensor of the quantization if it has one; results are
// the codes, the scales if it gives any, and others.

#include <functional>
#include <span>
#include <string>

#include "kernels/cpu/lib/quantized_rows_kernels.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/kernel.h"

namespace weft::cpu {

struct QuantTail {
  const char* op;  // that quantizes alone
  bool gives_scales;
  // Whether what the attributes say is supported; the number of the quantization's tensor.
  Verdict (*supports)(const KernelRequest&, std::size_t tensor);
  // The task that the call states for rows of `columns`, codes being their view; no rows to read or write yet. Clears
  // what rows leave of the results.
  QuantTask (*task)(const KernelCall&, std::size_t tensor, std::int64_t columns);
  std::int64_t group = 0;  // columns of one, where it is the op that says so
  // Whether generated code does it as fast (bench/generated_bench), alone and behind other ops: f32 on every
  // instruction set, bf16 on AVX-512.
  bool yields_f32 = false;
  bool yields_bf16 = false;

  // Results that are the quantization's.
  std::size_t results() const { return gives_scales ? 2 : 1; }
  // The view that stands for the scales where rows are run: the codes where there are none.
  const TensorView& scales(const KernelCall& call) const { return call.results[gives_scales ? 1 : 0]; }
};

std::span<const QuantTail> quant_tails();

// Whether groups fit where another op's result waits, too.
Verdict supports_waiting(const QuantTail& tail, const KernelRequest& request, std::size_t tensor);

// The task with the codes and scales of a run, which are its first two operands.
QuantTask with_results(QuantTask task, const RowRun& run);

using QuantizedRowRun = std::function<void(const QuantizedRowKernels&, const KernelCall&)>;
// A kernel of provider cpu that runs the code for the device's instruction set, of the op `front` that ends in the
// quantization; "" for the tail's own op.
Kernel quantized_rows_kernel(const std::string& front, const QuantTail& tail,
                             std::function<Verdict(const KernelRequest&)> supports, QuantizedRowRun run);
// That of the tail's own op.
Kernel quantizing_kernel(const QuantTail& tail);

}  // namespace weft::cpu
