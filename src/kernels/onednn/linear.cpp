// linear by oneDNN's sgemm. The order of its f32 sums is oneDNN's own and depends on the number of rows.
//
// 16-bit rows are widened once, 16-bit weights slice by slice. oneDNN itself multiplies bf16 only on processors with
// AVX-512, and only through primitives, each for one number of rows. sgemm keeps no state between calls.

#include <algorithm>

#include <fmt/core.h>

#include "kernels/onednn/library.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/convert.h"

namespace weft::onednn {
namespace {

// Rows of one call. They are limited so that the scratch of a slice does not grow with the rows.
constexpr std::int64_t kBlockRows = 512;

bool takes(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

std::int64_t float_row_bytes(std::int64_t count) {
  return whole_cache_lines(count * static_cast<std::int64_t>(sizeof(float)));
}

Verdict supports(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[1];
  const std::optional<Meta>& bias = request.operands[2];
  if (!weight.packed.empty()) return Verdict::no("reads plain weights, not " + weight.text());
  for (const Meta* meta : {&x, &weight, &request.results[0]})
    if (!takes(meta->dtype)) return Verdict::no(fmt::format("takes f32, bf16 and f16, not {}", meta->text()));
  if (!weight.shape[0].is_number() || !weight.shape[1].is_number() || weight.shape[1].number() == 0)
    return Verdict::no(fmt::format("wants a weight of known size, not {}", weight.text()));
  for (const Meta* meta : {&x, &weight})
    if (!has_plain_rows(*meta)) return Verdict::no(fmt::format("wants contiguous rows, not {}", meta->text()));
  if (!request.results[0].is_contiguous()) return Verdict::no("the result is not contiguous");
  if (bias && (!takes(bias->dtype) || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return is_there();
}

// How a call's scratch is divided: rows widened to f32, then for each thread a widened slice of the weight and the sums
// of a slice. A part that is not needed takes no bytes.
struct Scratch {
  std::int64_t row;
  std::int64_t slice;
  std::int64_t sums;

  Scratch(DType x, DType weight, DType result, std::int64_t depth)
      : row(x == DType::f32 ? 0 : float_row_bytes(depth)),
        slice(weight == DType::f32 ? 0 : kSliceColumns * float_row_bytes(depth)),
        sums(result == DType::f32 ? 0 : kBlockRows * float_row_bytes(kSliceColumns)) {}
};

// Rows of floats, `stride` elements apart.
struct FloatRows {
  const float* data;
  std::int64_t stride;
};

void widen_row(DType from, const std::byte* source, float* target, std::int64_t count) {
  convert_row(from, source, DType::f32, reinterpret_cast<std::byte*>(target), count);
}

FloatRows widened_x(const TensorView& x, std::int64_t rows, const Scratch& scratch, const KernelCall& call) {
  const std::int64_t depth = x.size[x.rank - 1];
  // The stride of a single row may be anything.
  const std::int64_t stride = x.rank == 2 && rows > 1 ? x.stride[0] : depth;
  if (scratch.row == 0) return {x.as<const float>(), stride};
  call.threads.run(rows, [&](std::int64_t row, int) {
    widen_row(x.dtype, x.data + bytes_of(x.dtype, row * stride),
              reinterpret_cast<float*>(call.scratch.data() + row * scratch.row), depth);
  });
  return {reinterpret_cast<const float*>(call.scratch.data()), scratch.row / static_cast<std::int64_t>(sizeof(float))};
}

FloatRows widened_slice(const TensorView& weight, std::int64_t first, std::int64_t columns, std::int64_t row_bytes,
                        std::byte* to) {
  const std::int64_t depth = weight.size[1];
  const std::int64_t stride = weight.size[0] > 1 ? weight.stride[0] : depth;
  const std::byte* from = weight.data + bytes_of(weight.dtype, first * stride);
  if (weight.dtype == DType::f32) return {reinterpret_cast<const float*>(from), stride};
  for (std::int64_t column = 0; column < columns; ++column)
    widen_row(weight.dtype, from + bytes_of(weight.dtype, column * stride),
              reinterpret_cast<float*>(to + column * row_bytes), depth);
  return {reinterpret_cast<const float*>(to), row_bytes / static_cast<std::int64_t>(sizeof(float))};
}

void run(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& weight = call.operands[1];
  const TensorView& bias = call.operands[2];
  const TensorView& result = call.results[0];
  const std::int64_t columns = weight.size[0], depth = weight.size[1];
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.size[i];
  if (rows == 0) return;

  const Scratch scratch(x.dtype, weight.dtype, result.dtype, depth);
  const FloatRows all = widened_x(x, rows, scratch, call);
  const std::int64_t slices = (columns + kSliceColumns - 1) / kSliceColumns;
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  call.threads.run(slices * blocks, [&](std::int64_t chunk, int thread) {
    const std::int64_t first_column = chunk / blocks * kSliceColumns, first_row = chunk % blocks * kBlockRows;
    const std::int64_t width = std::min(kSliceColumns, columns - first_column);
    const std::int64_t height = std::min(kBlockRows, rows - first_row);
    std::byte* own = call.scratch.data() + rows * scratch.row + thread * (scratch.slice + scratch.sums);
    const FloatRows slice = widened_slice(weight, first_column, width, scratch.slice / kSliceColumns, own);
    const std::int64_t first_result = first_row * columns + first_column;
    float* sums = scratch.sums == 0 ? result.as<float>() + first_result : reinterpret_cast<float*>(own + scratch.slice);
    const std::int64_t stride = scratch.sums == 0 ? columns : kSliceColumns;
    {
      const OneThread one_thread;
      check_status("dnnl_sgemm",
                   library().sgemm('N', 'T', height, width, depth, 1.0f, all.data + first_row * all.stride, all.stride,
                                   slice.data, slice.stride, 0.0f, sums, stride));
    }
    float shift[kSliceColumns];
    if (bias.present()) widen_row(bias.dtype, bias.data + bytes_of(bias.dtype, first_column), shift, width);
    for (std::int64_t row = 0; row < height; ++row) {
      float* of_row = sums + row * stride;
      if (bias.present())
        for (std::int64_t column = 0; column < width; ++column) of_row[column] += shift[column];
      if (scratch.sums != 0)
        convert_row(DType::f32, reinterpret_cast<const std::byte*>(of_row), result.dtype,
                    result.data + bytes_of(result.dtype, first_result + row * columns), width);
    }
  });
}

Dim scratch_bytes(int threads, const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[1];
  const Scratch scratch(x.dtype, weight.dtype, request.results[0].dtype, weight.shape[1].number());
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < x.rank(); ++i) rows = rows * x.shape[i];
  return (scratch.row == 0 ? Dim(0) : rows * Dim(scratch.row)) + Dim(threads * (scratch.slice + scratch.sums));
}

}  // namespace
}  // namespace weft::onednn

KERNELS(onednn, linear) {
  Kernel kernel;
  kernel.op = "linear";
  kernel.provider = "onednn";
  kernel.supported = onednn::runs_on_cpu;
  kernel.supports = onednn::supports;
  kernel.batch_invariant = false;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return onednn::scratch_bytes(threads, request);
    };
  };
  kernel.run = onednn::run;
  kernel.note = "sgemm on slices of 128 columns over the threads; the instruction set is oneDNN's choice";
  registry.add(std::move(kernel));
}
