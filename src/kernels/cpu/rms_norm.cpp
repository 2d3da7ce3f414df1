// rms_norm and fused_add_rms_norm, which overwrites both of its activations; and their quantizations, which overwrite
// the residual. Parallel over rows; a row is read twice, the second time from L1.

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/quantizing_epilogue.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

NormTask norm_task(const KernelCall& call, const TensorView& weight) {
  const TensorView& x = call.operands[0];
  NormTask task;
  task.columns = x.size[x.rank - 1];
  task.weight = weight.data;
  task.epsilon = static_cast<float>(call.attributes.at("epsilon").real());
  const Attribute& variance_size = call.attributes.at("variance_size");
  task.variance_columns = variance_size.is_none() ? task.columns : variance_size.integer();
  CHECK(task.variance_columns >= 0 && task.variance_columns <= task.columns,
        "[rms_norm] variance_size {} of {} columns", task.variance_columns, task.columns);
  return task;
}

Verdict supports_rms_norm(const KernelRequest& request) {
  if (Verdict verdict = float_rows(request.operands[0], "x"); !verdict) return verdict;
  return norm_weight(request.operands[1], request.operands[0]->dtype);
}

void run_rms_norm(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& output = call.results[0];
  const NormTask shared = norm_task(call, call.operands[1]);
  const auto element = static_cast<std::size_t>(element_of(x.dtype));
  const auto function = kernels.rms_norm[element][weighting_of(call.operands[1], x.dtype)];
  RowSpace({&output, &x})
      .run(call.threads, 2 * shared.columns * dtype_info(x.dtype).block_bytes, [&](const RowRun& run) {
        NormTask task = shared;
        task.output = run.data[0];
        task.output_stride = run.stride[0];
        task.x = run.data[1];
        task.x_stride = run.stride[1];
        task.rows = run.count;
        function(task);
      });
}

Kernel quantized_rms_norm_kernel(const QuantizingEpilogue& epilogue) {
  const auto supports = [epilogue](const KernelRequest& request) {
    if (Verdict verdict = supports_rms_norm(request); !verdict) return verdict;
    return supports_waiting(epilogue, request, 2);
  };
  const auto run = [epilogue](const QuantizedRowKernels& kernels, const KernelCall& call) {
    const TensorView& x = call.operands[0];
    const NormTask shared = norm_task(call, call.operands[1]);
    const QuantTask quant = epilogue.task(call, 2, shared.columns);
    const auto element = static_cast<std::size_t>(element_of(x.dtype));
    const auto function = kernels.rms_norm[element][weighting_of(call.operands[1], x.dtype)];
    const RowSpace rows({&call.results[0], &epilogue.scales(call), &x});
    rows.run(call.threads, shared.columns * (1 + dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
      NormTask task = shared;
      task.x = run.data[2];
      task.x_stride = run.stride[2];
      task.rows = run.count;
      function(task, with_results(quant, run));
    });
  };
  return quantized_rows_kernel("rms_norm", epilogue, supports, run);
}

Verdict supports_fused_add_rms_norm(const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  const std::optional<Meta>& residual = request.operands[1];
  if (Verdict verdict = float_rows(x, "x"); !verdict) return verdict;
  if (Verdict verdict = float_rows(residual, "x_residual"); !verdict) return verdict;
  if (residual->dtype != x->dtype) return Verdict::no("x_residual has another dtype than x");
  if (residual->shape != x->shape) return Verdict::no("x_residual has another shape than x");
  return norm_weight(request.operands[2], x->dtype);
}

void run_fused_add_rms_norm(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  NormTask shared = norm_task(call, call.operands[2]);
  shared.normalize_rounded = call.attributes.at("intermediate").word() == "input_dtype";
  const auto element = static_cast<std::size_t>(element_of(x.dtype));
  const auto function = kernels.fused_add_rms_norm[element][weighting_of(call.operands[2], x.dtype)];
  const RowSpace rows({&call.results[0], &call.results[1], &x, &call.operands[1]});
  rows.run(call.threads, 4 * shared.columns * dtype_info(x.dtype).block_bytes, [&](const RowRun& run) {
    NormTask task = shared;
    task.output = run.data[0];
    task.output_stride = run.stride[0];
    task.residual_output = run.data[1];
    task.residual_output_stride = run.stride[1];
    task.x = run.data[2];
    task.x_stride = run.stride[2];
    task.residual = run.data[3];
    task.residual_stride = run.stride[3];
    task.rows = run.count;
    function(task);
  });
}

Kernel quantized_fused_add_rms_norm_kernel(const QuantizingEpilogue& epilogue) {
  const auto supports = [epilogue](const KernelRequest& request) {
    if (Verdict verdict = supports_fused_add_rms_norm(request); !verdict) return verdict;
    return supports_waiting(epilogue, request, 3);
  };
  const auto run = [epilogue](const QuantizedRowKernels& kernels, const KernelCall& call) {
    const TensorView& x = call.operands[0];
    NormTask shared = norm_task(call, call.operands[2]);
    shared.normalize_rounded = call.attributes.at("intermediate").word() == "input_dtype";
    const QuantTask quant = epilogue.task(call, 3, shared.columns);
    const auto element = static_cast<std::size_t>(element_of(x.dtype));
    const auto function = kernels.fused_add_rms_norm[element][weighting_of(call.operands[2], x.dtype)];
    const RowSpace rows(
        {&call.results[0], &epilogue.scales(call), &call.results[epilogue.results()], &x, &call.operands[1]});
    rows.run(call.threads, shared.columns * (1 + 3 * dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
      NormTask task = shared;
      task.residual_output = run.data[2];
      task.residual_output_stride = run.stride[2];
      task.x = run.data[3];
      task.x_stride = run.stride[3];
      task.residual = run.data[4];
      task.residual_stride = run.stride[4];
      task.rows = run.count;
      function(task, with_results(quant, run));
    });
  };
  Kernel kernel = quantized_rows_kernel("fused_add_rms_norm", epilogue, supports, run);
  kernel.writes = {1};
  return kernel;
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, rms_norm) {
  registry.add({.op = "rms_norm",
                .provider = "cpu",
                .supports = weft::cpu::supports_rms_norm,
                .yields = weft::cpu::yields(0, {weft::DType::f32, weft::DType::bf16}),
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run_rms_norm>,
                .note = weft::cpu::kRowWiseNote});
  registry.add({.op = "fused_add_rms_norm",
                .provider = "cpu",
                .supports = weft::cpu::supports_fused_add_rms_norm,
                .yields = weft::cpu::yields(0, {weft::DType::f32, weft::DType::bf16}),
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run_fused_add_rms_norm>,
                .writes = {0, 1},
                .note = weft::cpu::kRowWiseNote});
  for (const weft::cpu::QuantizingEpilogue& epilogue : weft::cpu::quantizing_epilogues()) {
    registry.add(weft::cpu::quantized_rms_norm_kernel(epilogue));
    registry.add(weft::cpu::quantized_fused_add_rms_norm_kernel(epilogue));
  }
}
