// linear_int8 with oneDNN's integer products. The product of the codes of each group of 32 is exact in int32. It is
// then scaled and added as the op's definition says, so the bits are the same.
//
// The codes of the weight are passed as unsigned bytes with a zero point. Without VNNI oneDNN adds two byte products in
// 16 bits: those of 4-bit codes fit, those of 8-bit codes saturate.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "kernels/onednn/library.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"

namespace weft::onednn {
namespace {

// Rows of one call: its int32 products and f32 sums, 64 KB each, stay in the second-level cache.
constexpr std::int64_t kBlockRows = 128;
constexpr std::int64_t kCellBytes = 4;

// Activations have one scale for 32 codes.
constexpr std::int64_t kGroup = 32;

Verdict supports(bool wide_sums, const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& scale = *request.operands[1];
  const Meta& weight = *request.operands[2];
  const Meta& result = request.results[0];
  if (!weight.packed.empty()) return Verdict::no("reads plain weights, not " + weight.text());
  if (!is_block(weight.dtype) || block_format(weight.dtype).group != kGroup)
    return Verdict::no(fmt::format("wants a weight in groups of {} codes, not {}", kGroup, weight.text()));
  const CodeRange range = code_range(block_format(weight.dtype));
  if (range.greatest - range.least > 127 && !wide_sums)
    return Verdict::no("without VNNI oneDNN's sums of 8-bit products saturate at 16 bits");
  if (!weight.shape[0].is_number() || !weight.shape[1].is_number())
    return Verdict::no(fmt::format("wants a weight of known size, not {}", weight.text()));
  if (!has_plain_rows(x) || !has_plain_rows(scale))
    return Verdict::no(fmt::format("wants contiguous rows, not {} and {}", x.text(), scale.text()));
  if (!result.is_contiguous() ||
      (result.dtype != DType::f32 && result.dtype != DType::bf16 && result.dtype != DType::f16))
    return Verdict::no(fmt::format("gives contiguous f32, bf16 and f16, not {}", result.text()));
  return is_there();
}

// How a call's scratch is divided: scales, and scales times sums of codes for weights with minimums, both as [groups,
// rows]; then for each thread a slice of the weight (codes as [columns, depth], scales and minimums as [columns,
// groups]), and products and sums of one block as [columns, rows].
struct Scratch {
  static constexpr std::int64_t kBlock = kSliceColumns * kBlockRows * kCellBytes;
  std::int64_t codes;
  std::int64_t scales;

  explicit Scratch(std::int64_t depth)
      : codes(whole_cache_lines(kSliceColumns * depth)),
        scales(whole_cache_lines(kSliceColumns * (depth / kGroup) * kCellBytes)) {}
  std::int64_t of_thread() const { return codes + 2 * scales + 2 * kBlock; }
};

// Columns of the weight as the products take them: codes from 0 on.
struct Slice {
  std::uint8_t* codes;
  float* scales;
  float* minimums;
};

struct Call {
  std::int64_t rows, columns, depth, groups;
  const std::int8_t* x;
  std::int64_t x_stride;
  const TensorView& weight;
  const BlockFormat& format;
  int least_code;
  float* scales;
  float* terms;
};

// Scales and terms of one row.
void compute_terms(const Call& all, const float* scale, std::int64_t row) {
  for (std::int64_t group = 0; group < all.groups; ++group) {
    const std::int8_t* codes = all.x + row * all.x_stride + group * kGroup;
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < kGroup; ++k) sum += codes[k];
    all.scales[group * all.rows + row] = scale[group];
    all.terms[group * all.rows + row] = scale[group] * static_cast<float>(sum);
  }
}

void unpack_slice(const Call& all, std::int64_t first_column, std::int64_t width, const Slice& slice) {
  const DTypeInfo& info = dtype_info(all.weight.dtype);
  const std::int64_t blocks = all.depth / info.block_elements, groups = info.block_elements / kGroup;
  const std::byte* block = all.weight.data + first_column * blocks * info.block_bytes;
  auto* codes = reinterpret_cast<std::int8_t*>(slice.codes);
  for (std::int64_t i = 0; i < width * blocks; ++i)
    unpack_block(all.format, block + i * info.block_bytes, codes + i * info.block_elements, slice.scales + i * groups,
                 slice.minimums + i * groups);
  for (std::int64_t i = 0; i < width * all.depth; ++i)
    slice.codes[i] = static_cast<std::uint8_t>(codes[i] - all.least_code);
}

// sums += scale of the weight * scale * products (+ minimum * term), over the rows of one column and group.
void add_group(const Call& all, const Slice& slice, std::int64_t column, std::int64_t group, std::int64_t first_row,
               std::int64_t height, const std::int32_t* products, float* sums) {
  const float d = slice.scales[column * all.groups + group];
  const float* scales = all.scales + group * all.rows + first_row;
  for (std::int64_t row = 0; row < height; ++row)
    sums[row] = std::fma(static_cast<float>(products[row]), d * scales[row], sums[row]);
  if (!all.format.has_minimums) return;
  const float m = slice.minimums[column * all.groups + group];
  const float* terms = all.terms + group * all.rows + first_row;
  for (std::int64_t row = 0; row < height; ++row) sums[row] = std::fma(m, terms[row], sums[row]);
}

// sums[column, row] of one block of rows and one slice of columns.
void multiply_block(const Call& all, const Slice& slice, std::int64_t width, std::int64_t first_row,
                    std::int64_t height, std::int32_t* products, float* sums) {
  std::fill(sums, sums + width * kBlockRows, 0.0f);
  const auto zero = static_cast<std::uint8_t>(-all.least_code);
  const OneThread one_thread;
  for (std::int64_t group = 0; group < all.groups; ++group) {
    const std::int32_t no_offset = 0;
    check_status("dnnl_gemm_u8s8s32",
                 library().gemm_u8s8s32('N', 'T', 'F', width, height, kGroup, 1.0f, slice.codes + group * kGroup,
                                        all.depth, zero, all.x + first_row * all.x_stride + group * kGroup,
                                        all.x_stride, 0, 0.0f, products, kBlockRows, &no_offset));
    for (std::int64_t column = 0; column < width; ++column)
      add_group(all, slice, column, group, first_row, height, products + column * kBlockRows,
                sums + column * kBlockRows);
  }
}

void store_block(const TensorView& result, std::int64_t first_column, std::int64_t width, std::int64_t first_row,
                 std::int64_t height, const float* sums) {
  for (std::int64_t row = 0; row < height; ++row) {
    float values[kSliceColumns];
    for (std::int64_t column = 0; column < width; ++column) values[column] = sums[column * kBlockRows + row];
    const std::int64_t first = (first_row + row) * result.size[1] + first_column;
    convert_row(DType::f32, reinterpret_cast<const std::byte*>(values), result.dtype,
                result.data + bytes_of(result.dtype, first), width);
  }
}

void run(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& scale = call.operands[1];
  const TensorView& weight = call.operands[2];
  const std::int64_t rows = x.size[0], columns = weight.size[0], depth = weight.size[1];
  if (rows == 0) return;
  const std::int64_t groups = depth / kGroup, table = whole_cache_lines(groups * rows * kCellBytes);
  // The stride of a single row may be anything.
  const Call all{rows,
                 columns,
                 depth,
                 groups,
                 x.as<const std::int8_t>(),
                 rows > 1 ? x.stride[0] : depth,
                 weight,
                 block_format(weight.dtype),
                 code_range(block_format(weight.dtype)).least,
                 reinterpret_cast<float*>(call.scratch.data()),
                 reinterpret_cast<float*>(call.scratch.data() + table)};
  call.threads.run(
      rows, [&](std::int64_t row, int) { compute_terms(all, scale.as<const float>() + row * scale.stride[0], row); });
  const Scratch scratch(depth);
  call.threads.run((columns + kSliceColumns - 1) / kSliceColumns, [&](std::int64_t chunk, int thread) {
    const std::int64_t first_column = chunk * kSliceColumns, width = std::min(kSliceColumns, columns - first_column);
    std::byte* own = call.scratch.data() + 2 * table + thread * scratch.of_thread();
    const Slice slice{reinterpret_cast<std::uint8_t*>(own), reinterpret_cast<float*>(own + scratch.codes),
                      reinterpret_cast<float*>(own + scratch.codes + scratch.scales)};
    own += scratch.codes + 2 * scratch.scales;
    auto* products = reinterpret_cast<std::int32_t*>(own);
    auto* sums = reinterpret_cast<float*>(own + Scratch::kBlock);
    unpack_slice(all, first_column, width, slice);
    for (std::int64_t first_row = 0; first_row < rows; first_row += kBlockRows) {
      const std::int64_t height = std::min(kBlockRows, rows - first_row);
      multiply_block(all, slice, width, first_row, height, products, sums);
      store_block(call.results[0], first_column, width, first_row, height, sums);
    }
  });
}

Dim scratch_bytes(int threads, const KernelRequest& request) {
  const std::int64_t depth = request.operands[2]->shape[1].number();
  const Dim table = align(request.operands[0]->shape[0] * Dim(depth / kGroup * kCellBytes), 64);
  return table + table + Dim(threads * Scratch(depth).of_thread());
}

}  // namespace
}  // namespace weft::onednn

KERNELS(onednn, linear_int8) {
  Kernel kernel;
  kernel.op = "linear_int8";
  kernel.provider = "onednn";
  kernel.supported = onednn::runs_on_cpu;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    // oneDNN detects the processor by itself, so a configured limit on the instruction set does not apply.
    const bool wide_sums = device.host >= CpuFeatures::avx512_vnni;
    prepared.supports = [wide_sums](const KernelRequest& request) { return onednn::supports(wide_sums, request); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return onednn::scratch_bytes(threads, request);
    };
  };
  kernel.run = onednn::run;
  kernel.note =
      "gemm_u8s8s32 a group on slices of 128 columns over the threads; the instruction set is oneDNN's choice";
  registry.add(std::move(kernel));
}
