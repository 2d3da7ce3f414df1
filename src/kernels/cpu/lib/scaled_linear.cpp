#include "kernels/cpu/lib/scaled_linear.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "kernels/cpu/lib/result_kind.h"
#include "kernels/cpu/lib/rows.h"
#include "tensor/convert.h"

namespace weft::cpu {
namespace {

// The depth of a tile: 4 columns of 1024 floats fill half of a first-level cache.
constexpr std::int64_t kTileDepth = 1024;
// The rows of a piece of work: 64 rows of that depth stay in a second-level cache.
constexpr std::int64_t kRowBlock = 64;

std::int64_t padded(std::int64_t depth, std::int64_t to = kScaledPadding) { return (depth + to - 1) / to * to; }

SmallCode code_of(DType dtype) {
  if (dtype == DType::f4e2m1) return SmallCode::f4e2m1;
  return dtype == DType::f8e4m3fnuz ? SmallCode::f8e4m3fnuz : SmallCode::f8e4m3;
}

// Widens codes [first, first + count) of a row, group by group.
void widen_row(const ScaledLinearKernels& kernels, const TensorView& codes, const ScaleGrid& scales, std::int64_t row,
               std::int64_t first, std::int64_t count, float* to) {
  const SmallCode code = code_of(codes.dtype);
  const auto widen = kernels.widen[static_cast<std::size_t>(code)];
  const int codes_of_byte = code == SmallCode::f4e2m1 ? 2 : 1;
  const std::byte* from = codes.data + row * codes.stride[0] / codes_of_byte;
  if (!scales.is_there()) return widen(from + first / codes_of_byte, 1.0f, to, count);
  const std::int64_t group_row = row / scales.group_rows;
  std::int64_t group = first / scales.group_columns;
  for (std::int64_t k = first; k < first + count; ++group) {
    const std::int64_t end = std::min(first + count, (group + 1) * scales.group_columns);
    widen(from + k / codes_of_byte, scales.at(group_row, group), to + (k - first), end - k);
    k = end;
  }
}

// Calls body(row) for all rows, shared among the threads.
template <class Body>
void for_each_row(std::int64_t rows, ThreadPool& threads, Body body) {
  constexpr std::int64_t kRowsOfChunk = 16;
  threads.run((rows + kRowsOfChunk - 1) / kRowsOfChunk, [&](std::int64_t chunk, int) {
    for (std::int64_t row = chunk * kRowsOfChunk; row < std::min(rows, (chunk + 1) * kRowsOfChunk); ++row) body(row);
  });
}

void widen_all(const ScaledLinearKernels& kernels, const ScaledLinear& linear, float* to, ThreadPool& threads) {
  const std::int64_t depth = linear.x.size[1], stride = padded(depth);
  for_each_row(linear.x.size[0], threads, [&](std::int64_t row) {
    widen_row(kernels, linear.x, linear.x_scale, row, 0, depth, to + row * stride);
    std::fill(to + row * stride + depth, to + (row + 1) * stride, 0.0f);
  });
}

void widen_integers(const TensorView& x, std::int16_t* to, ThreadPool& threads) {
  const std::int64_t depth = x.size[1], stride = padded(depth, kIntegerPadding);
  for_each_row(x.size[0], threads, [&](std::int64_t row) {
    const auto* from = reinterpret_cast<const std::int8_t*>(x.data) + row * x.stride[0];
    std::int16_t* wide = to + row * stride;
    for (std::int64_t k = 0; k < depth; ++k) wide[k] = from[k];
    std::fill(wide + depth, wide + stride, std::int16_t{0});
  });
}

// Rows [first_row, first_row + rows) of columns [first_column, first_column + columns).
struct Piece {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t first_column;
  int columns;
};

void add_products(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const float* x, const Piece& piece,
                  float* sums) {
  alignas(64) float tile[kScaledTileColumns * kTileDepth];
  const std::int64_t depth = linear.x.size[1], x_stride = padded(depth);
  for (std::int64_t k = 0; k < depth; k += kTileDepth) {
    const std::int64_t count = std::min(kTileDepth, depth - k);
    for (int column = 0; column < piece.columns; column += kScaledTileColumns) {
      for (int c = 0; c < kScaledTileColumns; ++c) {
        float* to = tile + c * kTileDepth;
        const bool is_there = column + c < piece.columns;
        if (is_there)
          widen_row(kernels, linear.weight, linear.weight_scale, piece.first_column + column + c, k, count, to);
        std::fill(to + (is_there ? count : 0), to + padded(count), 0.0f);
      }
      kernels.multiply({.weight = tile,
                        .weight_stride = kTileDepth,
                        .x = x + piece.first_row * x_stride + k,
                        .x_stride = x_stride,
                        .depth = padded(count),
                        .rows = piece.rows,
                        .sums = sums + column});
    }
  }
}

void set_integer_products(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const std::int16_t* x,
                          const Piece& piece, float* sums) {
  std::int32_t exact[kRowBlock * kScaledColumns] = {};
  const std::int64_t depth = linear.x.size[1], x_stride = padded(depth, kIntegerPadding);
  kernels.multiply_integers(
      {.weight = reinterpret_cast<const std::int8_t*>(linear.weight.data) + piece.first_column * depth,
       .weight_stride = depth,
       .columns = piece.columns,
       .x = x + piece.first_row * x_stride,
       .x_stride = x_stride,
       .depth = depth,
       .rows = piece.rows,
       .sums = exact});
  for (std::int64_t i = 0; i < piece.rows * kScaledColumns; ++i) sums[i] = static_cast<float>(exact[i]);
}

void finish(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const Piece& piece, const float* sums) {
  float column_scale[kScaledColumns] = {}, bias[kScaledColumns] = {};
  for (int c = 0; c < piece.columns; ++c) {
    const std::int64_t column = piece.first_column + c;
    if (linear.column_scale.data != nullptr) column_scale[c] = linear.column_scale.at(column, 0);
    if (linear.bias.present()) bias[c] = load_float(linear.bias.dtype, linear.bias.data, column);
  }
  const ScaleGrid& rows = linear.row_scale;
  const TensorView& result = linear.result;
  const std::int64_t columns = result.size[1];
  const Element element = element_of(result.dtype);
  kernels.finish[static_cast<std::size_t>(element)](
      {.sums = sums,
       .rows = piece.rows,
       .columns = piece.columns,
       .column_scale = linear.column_scale.data == nullptr ? nullptr : column_scale,
       .row_scale = rows.data == nullptr ? nullptr : rows.data + piece.first_row * rows.row_stride,
       .row_scale_stride = rows.row_stride,
       .bias = linear.bias.present() ? bias : nullptr,
       .output = result.data + (piece.first_row * columns + piece.first_column) * dtype_info(result.dtype).block_bytes,
       .output_stride = columns});
}

}  // namespace

Verdict supports_scaled_linear(const KernelRequest& request, std::initializer_list<DType> codes,
                               std::size_t weight_number, std::size_t bias_number) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[weight_number];
  const std::optional<Meta>& bias = request.operands[bias_number];
  if (std::find(codes.begin(), codes.end(), x.dtype) == codes.end())
    return Verdict::no(fmt::format("no codes of {}", dtype_text(x.dtype)));
  if (!has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  if (x.dtype == DType::i8 && x.shape[1].number() > kDeepestIntegers)
    return Verdict::no(fmt::format("sums of {} products may not fit 32 bits", x.shape[1].number()));
  if (!weight.packed.empty() || !weight.is_contiguous() || !weight.shape[0].is_number())
    return Verdict::no(fmt::format("wants a plain weight, but is {}", weight.text()));
  if (bias && (!float_kind(bias->dtype) || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return result_verdict(request.results[0]);
}

// Enough for rows of floats, which need more than integers.
Dim scaled_linear_scratch(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  return x.shape[0] * Dim(padded(x.shape[1].number()) * static_cast<std::int64_t>(sizeof(float)));
}

void run_scaled_linear(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const KernelCall& call) {
  auto* const x = reinterpret_cast<float*>(call.scratch.data());
  auto* const integers = reinterpret_cast<std::int16_t*>(call.scratch.data());
  const std::int64_t rows = linear.x.size[0], columns = linear.weight.size[0];
  const bool is_integer = linear.x.dtype == DType::i8;
  if (is_integer) {
    widen_integers(linear.x, integers, call.threads);
  } else {
    widen_all(kernels, linear, x, call.threads);
  }
  const std::int64_t row_blocks = (rows + kRowBlock - 1) / kRowBlock;
  const std::int64_t column_blocks = (columns + kScaledColumns - 1) / kScaledColumns;
  call.threads.run(row_blocks * column_blocks, [&](std::int64_t index, int) {
    const std::int64_t first_row = index / column_blocks * kRowBlock;
    const std::int64_t first_column = index % column_blocks * kScaledColumns;
    const Piece piece{first_row, std::min(kRowBlock, rows - first_row), first_column,
                      static_cast<int>(std::min<std::int64_t>(kScaledColumns, columns - first_column))};
    alignas(64) float sums[kRowBlock * kScaledColumns] = {};
    if (is_integer) {
      set_integer_products(kernels, linear, integers, piece, sums);
    } else {
      add_products(kernels, linear, x, piece, sums);
    }
    finish(kernels, linear, piece, sums);
  });
}

}  // namespace weft::cpu
