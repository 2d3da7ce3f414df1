// per_token_group_quant_int8. Parallel over rows; a group is read twice, the second time from L1.

#include "kernels/cpu/lib/group_quant.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) { return float_rows(request.operands[0], "x"); }

void run(const QuantisedRowKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const std::int64_t columns = x.size[x.rank - 1];
  const GroupQuantTask shared = group_quant_task(call, columns);
  const auto function = kernels.groups[static_cast<std::size_t>(element_of(x.dtype))];
  const RowSpace rows({&call.results[0], &call.results[1], &x});
  rows.run(call.threads, columns * (1 + dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
    GroupQuantTask task = with_results(shared, run);
    task.x = run.data[2];
    task.x_stride = run.stride[2];
    function(task);
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, quantize) {
  registry.add({.op = "per_token_group_quant_int8",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare_quantised_rows<weft::cpu::run>,
                .note = weft::cpu::kRowWiseNote});
}
