// clone of a tensor of any dtype whose rows are contiguous: copies rows, in parallel.

#include <cstring>

#include "kernels/cpu/lib/result_kind.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  if (!x.is_tensor()) return Verdict::no(x.text() + " is not a tensor");
  if (!x.packed.empty()) return Verdict::no("x is packed");
  if (x.rank() == 0) return Verdict::no("x has no rows");
  return has_contiguous_rows(x) ? Verdict::yes() : Verdict::no("rows of x are not contiguous");
}

void run(const KernelCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const std::int64_t row_bytes = bytes_of(x.dtype, x.size[x.rank - 1]), stored = dtype_info(x.dtype).block_bytes;
  RowSpace({&y, &x}).run(call.threads, 2 * row_bytes, [&](const RowRun& run) {
    for (std::int64_t row = 0; row < run.count; ++row)
      std::memcpy(run.data[0] + row * run.stride[0] * stored, run.data[1] + row * run.stride[1] * stored,
                  static_cast<std::size_t>(row_bytes));
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, clone) {
  registry.add({.op = "clone",
                .provider = "cpu",
                .supported = weft::cpu::runs_on_cpu,
                .supports = weft::cpu::supports,
                .run = weft::cpu::run,
                .note = "rows in parallel; a copy of memory"});
}
