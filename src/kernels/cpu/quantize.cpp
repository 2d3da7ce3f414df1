// per_token_group_quant_int8. Parallel over rows; a group is read twice, the second time from L1.

#include "base/error.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) { return float_rows(request.operands[0], "x"); }

void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const std::int64_t columns = x.size[x.rank - 1];
  const std::int64_t group = call.attributes.at("group_size").integer();
  CHECK(group > 0 && columns % group == 0, "[per_token_group_quant_int8] group_size {} of {} columns", group, columns);
  const float least = static_cast<float>(call.attributes.at("eps").real());
  const bool toward_zero = call.attributes.at("rounding").word() == "toward_zero";
  const auto function = kernels.group_quant[static_cast<std::size_t>(element_of(x.dtype))];
  const RowSpace rows({&call.results[0], &call.results[1], &x});
  rows.run(call.threads, columns * (1 + dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
    function({.x = run.data[2],
              .codes = reinterpret_cast<std::int8_t*>(run.data[0]),
              .scales = reinterpret_cast<float*>(run.data[1]),
              .x_stride = run.stride[2],
              .codes_stride = run.stride[0],
              .scales_stride = run.stride[1],
              .rows = run.count,
              .columns = columns,
              .group = group,
              .least = least,
              .toward_zero = toward_zero});
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, quantize) {
  registry.add({.op = "per_token_group_quant_int8",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run>,
                .note = weft::cpu::kRowWiseNote});
}
