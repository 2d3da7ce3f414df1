// softmax over the last dim. Parallel over rows; a row is read three times, the second and third time from a cache.

#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  if (Verdict verdict = float_rows(x, "x"); !verdict) return verdict;
  const std::int64_t dim = request.attributes.at("dim").integer();
  if (dim != -1 && dim != static_cast<std::int64_t>(x->rank()) - 1) return Verdict::no("dim is not the last one");
  return Verdict::yes();
}

void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& output = call.results[0];
  const std::int64_t columns = x.size[x.rank - 1];
  const auto function = kernels.softmax[static_cast<std::size_t>(element_of(x.dtype))];
  RowSpace({&output, &x}).run(call.threads, 4 * columns * dtype_info(x.dtype).block_bytes, [&](const RowRun& run) {
    function({.x = run.data[1],
              .output = run.data[0],
              .x_stride = run.stride[1],
              .output_stride = run.stride[0],
              .rows = run.count,
              .columns = columns});
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, softmax) {
  registry.add({.op = "softmax",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run>,
                .note = weft::cpu::kRowWiseNote});
}
