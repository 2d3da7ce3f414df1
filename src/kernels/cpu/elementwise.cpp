// add, mul and cast between f32, f16 and bf16. Parallel over rows. Contiguous operands are cut into chunks of kColumns
// elements instead, so that one long row is shared, too.

#include <algorithm>

#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kColumns = 4096;

bool is_contiguous(const TensorView& view) {
  std::int64_t stride = 1;
  for (int dim = view.rank - 1; dim >= 0; --dim) {
    if (view.size[dim] != 1 && view.stride[dim] != stride) return false;
    stride *= view.size[dim];
  }
  return true;
}

// Calls function(task) for chunks of the elements if all operands are contiguous, and for their rows otherwise.
// `y` is null for one operand.
template <class Function>
void run_rows(const KernelCall& call, const TensorView& x, const TensorView* y, Function function) {
  const TensorView& output = call.results[0];
  const std::int64_t bytes = dtype_info(x.dtype).block_bytes;
  const std::int64_t output_bytes = dtype_info(output.dtype).block_bytes;
  const std::int64_t elements = output.elements();
  const bool same_size = x.elements() == elements && (y == nullptr || y->elements() == elements);
  if (same_size && is_contiguous(x) && is_contiguous(output) && (y == nullptr || is_contiguous(*y))) {
    const auto task = [&](std::int64_t first, std::int64_t count) {
      function(RowTask{.x = x.data + first * bytes,
                       .y = y == nullptr ? nullptr : y->data + first * bytes,
                       .output = output.data + first * output_bytes,
                       .rows = 1,
                       .columns = count});
    };
    if (elements <= 4 * kColumns) return task(0, elements);
    call.threads.run((elements + kColumns - 1) / kColumns, [&](std::int64_t chunk, int) {
      task(chunk * kColumns, std::min(kColumns, elements - chunk * kColumns));
    });
    return;
  }
  const std::int64_t columns = output.size[output.rank - 1];
  RowSpace({&output, &x, y == nullptr ? &x : y}).run(call.threads, 3 * columns * bytes, [&](const RowRun& run) {
    function(RowTask{.x = run.data[1],
                     .y = run.data[2],
                     .output = run.data[0],
                     .x_stride = run.stride[1],
                     .y_stride = run.stride[2],
                     .output_stride = run.stride[0],
                     .rows = run.count,
                     .columns = columns});
  });
}

Verdict supports_binary(const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  const std::optional<Meta>& y = request.operands[1];
  if (Verdict verdict = float_rows(x, "x"); !verdict) return verdict;
  if (Verdict verdict = float_rows(y, "y"); !verdict) return verdict;
  const Dim& columns = request.results[0].shape.back();
  if (x->shape.back() != columns || y->shape.back() != columns) return Verdict::no("the last dim is broadcast");
  return Verdict::yes();
}

Verdict supports_cast(const KernelRequest& request) {
  if (Verdict verdict = float_rows(request.operands[0], "x"); !verdict) return verdict;
  return float_rows(request.results[0], "the result");
}

void run_add(const RowWiseKernels& kernels, const KernelCall& call) {
  const auto element = static_cast<std::size_t>(element_of(call.operands[0].dtype));
  run_rows(call, call.operands[0], &call.operands[1], kernels.add[element]);
}

void run_mul(const RowWiseKernels& kernels, const KernelCall& call) {
  const auto element = static_cast<std::size_t>(element_of(call.operands[0].dtype));
  run_rows(call, call.operands[0], &call.operands[1], kernels.mul[element]);
}

void run_cast(const RowWiseKernels& kernels, const KernelCall& call) {
  const auto from = static_cast<std::size_t>(element_of(call.operands[0].dtype));
  const auto to = static_cast<std::size_t>(element_of(call.results[0].dtype));
  run_rows(call, call.operands[0], nullptr, kernels.cast[from][to]);
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, elementwise) {
  using namespace weft::cpu;
  registry.add({.op = "add",
                .provider = "cpu",
                .supports = supports_binary,
                .yields = yields(0, {DType::f32, DType::bf16}),
                .prepare = prepare_row_wise<run_add>,
                .note = kRowWiseNote});
  registry.add({.op = "mul",
                .provider = "cpu",
                .supports = supports_binary,
                .yields = yields(0, {DType::f32, DType::bf16}),
                .prepare = prepare_row_wise<run_mul>,
                .note = kRowWiseNote});
  registry.add({.op = "cast",
                .provider = "cpu",
                .supports = supports_cast,
                .prepare = prepare_row_wise<run_cast>,
                .note = kRowWiseNote});
}
