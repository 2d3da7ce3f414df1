// index_select of rows, and embedding of plain weights; device/gather_rows.cu has the kernel. Row indices are not
// checked, because they are computed on the device.

#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/lib/block_sizes.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/row_launch.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/registry.h"

namespace weft::cuda {
namespace {

// The indices of an op's operands.
struct GatherOp {
  const char* op;
  std::size_t rows, ids;
};
constexpr std::array kOps = {GatherOp{"index_select", 0, 1}, GatherOp{"embedding", 1, 0}};

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Verdict supports(const GatherOp& op, const KernelRequest& request) {
  const Meta &from = *request.operands[op.rows], &ids = *request.operands[op.ids], &to = request.results[0];
  if (!from.packed.empty()) return Verdict::no(fmt::format("rows are packed as {}", from.packed));
  if (!from.is_contiguous() || !ids.is_contiguous()) return Verdict::no("an operand is not contiguous");
  if (const Attribute* dim = request.attributes.find("dim"); dim != nullptr && dim->integer() != 0)
    return Verdict::no(fmt::format("takes rows, not parts of dim {}", dim->integer()));
  for (std::size_t i = 1; i < from.rank(); ++i)
    if (!from.shape[i].is_number()) return Verdict::no(fmt::format("rows of {} are of no fixed size", from.text()));
  if (from.dtype == to.dtype) return Verdict::yes();
  if (!is_float(from.dtype) || !is_float(to.dtype))
    return Verdict::no(
        fmt::format("{} becomes {}; f32, f16 and bf16 are converted", dtype_text(from.dtype), dtype_text(to.dtype)));
  if (from.shape.back().number() % kConvertedElements != 0)
    return Verdict::no(fmt::format("rows have {} columns; multiples of {} are converted", from.shape.back().number(),
                                   kConvertedElements));
  return Verdict::yes();
}

// The largest unit that divides a row's bytes.
std::int64_t unit_of(std::int64_t row_bytes) {
  std::int64_t unit = 16;
  while (row_bytes % unit != 0) unit /= 2;
  return unit;
}

void run(const GatherOp& op, const KernelCall& call) {
  const TensorView &from = call.operands[op.rows], &ids = call.operands[op.ids], &to = call.results[0];
  const std::int64_t rows = ids.size[0];
  if (to.elements() == 0) return;
  const std::int64_t columns = to.elements() / rows;
  std::string kernel;
  std::int64_t units = columns / kConvertedElements, alignment = 16;
  if (from.dtype == to.dtype) {
    const std::int64_t bytes = bytes_of(from.dtype, columns);
    alignment = unit_of(bytes);
    units = bytes / alignment;
    kernel = fmt::format("gather_rows_{}", alignment);
  } else {
    kernel = fmt::format("gather_rows_{}_{}", dtype_text(from.dtype), dtype_text(to.dtype));
  }
  check_aligned(kernel.c_str(), "what rows are taken of", from.data, static_cast<std::uintptr_t>(alignment));
  check_aligned(kernel.c_str(), "the result", to.data, static_cast<std::uintptr_t>(alignment));
  GatherRowsArguments arguments{
      .from = from.data, .ids = ids.data, .to = to.data, .ids_are_wide = ids.dtype == DType::i64};
  const LaunchShape shape = plan_gather_rows(kernel, rows, units, arguments);
  run_call(kernel, shape, arguments, call);
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, gather_rows) {
  using namespace weft::cuda;
  for (const GatherOp& op : kOps)
    registry.add({.op = op.op,
                  .provider = "cuda",
                  .supported = supported,
                  .supports = [&op](const weft::KernelRequest& request) { return supports(op, request); },
                  .vector_bytes = 16,
                  .run = [&op](const weft::KernelCall& call) { run(op, call); },
                  .note = "a thread 16 bytes"});
}
