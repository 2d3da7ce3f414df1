// per_token_group_quant_fp8 and dynamic_per_token_scaled_fp8_quant. Parallel over rows; a group is read twice, the
// second time from the caches.

#include <fmt/core.h>

#include "kernels/cpu/lib/fp8_rows_kernels.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"
#include "tensor/convert.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const DType dtype = request.attributes.at("dtype").dtype();
  if (dtype != DType::f8e4m3) return Verdict::no(fmt::format("codes are {}; f8e4m3 is supported", dtype_text(dtype)));
  return float_rows(request.operands[0], "x");
}

void run_rows(const Fp8RowsKernels& kernels, const KernelCall& call, Fp8RowsTask shared) {
  const TensorView& x = call.operands[0];
  const TensorView& scales = call.results[1];
  const auto function = kernels.rows[static_cast<std::size_t>(element_of(x.dtype))];
  shared.columns = x.size[x.rank - 1];
  shared.scales_step = scales.stride[scales.rank - 1];
  const RowSpace rows({&call.results[0], &scales, &x});
  rows.run(call.threads, shared.columns * (1 + dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
    Fp8RowsTask task = shared;
    task.codes = reinterpret_cast<std::int8_t*>(run.data[0]);
    task.codes_stride = run.stride[0];
    task.scales = reinterpret_cast<float*>(run.data[1]);
    task.scales_stride = run.stride[1];
    task.x = run.data[2];
    task.x_stride = run.stride[2];
    task.rows = run.count;
    function(task);
  });
}

float real_attribute(const KernelCall& call, const char* name) {
  return static_cast<float>(call.attributes.at(name).real());
}

void groups(const Fp8RowsKernels& kernels, const KernelCall& call) {
  const Attributes& a = call.attributes;
  run_rows(kernels, call,
           {.group = a.at("group_size").integer(),
            .least_magnitude = real_attribute(call, "eps"),
            .scale_by_reciprocal = a.at("scale_by").word() == "reciprocal",
            .power_of_two = a.at("use_ue8m0").boolean(),
            .least_power = real_attribute(call, "ue8m0_minimum"),
            .least_scale = real_attribute(call, "minimum_scale")});
}

void tokens(const Fp8RowsKernels& kernels, const KernelCall& call) {
  constexpr float kLeastScale = 1.0 / (448 * 512);
  const Attributes& a = call.attributes;
  const TensorView& x = call.operands[0];
  const TensorView& bound = call.operands[1];
  const bool states_least = !a.at("minimum_scale").is_none();
  run_rows(kernels, call,
           {.group = x.size[x.rank - 1],
            .has_bound = bound.present(),
            .bound = bound.present() ? load_float(bound.dtype, bound.data, 0) : 0,
            .scale_by_reciprocal = a.at("scale_by").word() == "reciprocal",
            .least_scale = states_least ? real_attribute(call, "minimum_scale") : kLeastScale,
            .codes_by_reciprocal = a.at("codes_by").word() == "reciprocal"});
}

template <void (*run)(const Fp8RowsKernels&, const KernelCall&)>
void prepare(Kernel& kernel, const DeviceDescription& device) {
  const Fp8RowsKernels* kernels =
      table_for(device, fp8_rows_kernels_baseline, fp8_rows_kernels_avx2, fp8_rows_kernels_avx512);
  kernel.run = [kernels](const KernelCall& call) { run(*kernels, call); };
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, quantize_fp8) {
  using namespace weft::cpu;
  registry.add({.op = "per_token_group_quant_fp8",
                .provider = "cpu",
                .supports = supports,
                .prepare = prepare<groups>,
                .note = kRowWiseNote});
  registry.add({.op = "dynamic_per_token_scaled_fp8_quant",
                .provider = "cpu",
                .supports = supports,
                .prepare = prepare<tokens>,
                .note = kRowWiseNote});
}
