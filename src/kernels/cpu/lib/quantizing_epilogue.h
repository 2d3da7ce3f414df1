#pragma once

// The common part of kernels with a quantization, alone or as an epilogue: its op, what it supports, and its task. If a
// call begins with another op, that op's operands come first, then the tensor of the quantization if it has one. The
// results are the codes, the scales if there are any, and others.

#include <functional>
#include <span>
#include <string>

#include "kernels/cpu/lib/quantized_rows_kernels.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/kernel.h"

namespace weft::cpu {

struct QuantizingEpilogue {
  const char* op;  // the op that is the quantization alone
  bool gives_scales;
  // Whether the attributes are supported; `tensor` is the operand index of the quantization's tensor.
  Verdict (*supports)(const KernelRequest&, std::size_t tensor);
  // The task of a call for rows of `columns`, with the view of the codes as result. It has no rows to read or write
  // yet. Clears the parts of the results that rows do not write.
  QuantTask (*task)(const KernelCall&, std::size_t tensor, std::int64_t columns);
  std::int64_t group = 0;  // columns of a group, if the op determines them
  // Whether generated code is as fast (bench/generated_bench), for the quantization alone and after other ops: for f32
  // on every instruction set, for bf16 on AVX-512.
  bool yields_f32 = false;
  bool yields_bf16 = false;

  // The number of results of the quantization.
  std::size_t results() const { return gives_scales ? 2 : 1; }
  // The view for the scales when rows are run; the codes if there are no scales.
  const TensorView& scales(const KernelCall& call) const { return call.results[gives_scales ? 1 : 0]; }
};

std::span<const QuantizingEpilogue> quantizing_epilogues();

// Whether this is supported as the epilogue of another op, too, whose result is kept until its group is complete.
Verdict supports_waiting(const QuantizingEpilogue& epilogue, const KernelRequest& request, std::size_t tensor);

// The task with the codes and scales of a run, which are its first two operands.
QuantTask with_results(QuantTask task, const RowRun& run);

using QuantizedRowRun = std::function<void(const QuantizedRowKernels&, const KernelCall&)>;
// A kernel of provider cpu that runs the code for the device's instruction set. Its op is `front` with the quantization
// as the epilogue, or the quantization's own op if `front` is "".
Kernel quantized_rows_kernel(const std::string& front, const QuantizingEpilogue& epilogue,
                             std::function<Verdict(const KernelRequest&)> supports, QuantizedRowRun run);
// The kernel of the quantization's own op.
Kernel quantizing_kernel(const QuantizingEpilogue& epilogue);

}  // namespace weft::cpu
