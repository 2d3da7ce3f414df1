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

// Calls body(piece) for all pieces of at most `most_rows` rows, shared among the threads.
template <class Body>
void for_each_piece(const ScaledLinear& linear, std::int64_t most_rows, ThreadPool& threads, const Body& body) {
  const std::int64_t rows = linear.x.size[0], columns = linear.weight.size[0];
  const std::int64_t row_blocks = (rows + most_rows - 1) / most_rows;
  const std::int64_t column_blocks = (columns + kScaledColumns - 1) / kScaledColumns;
  threads.run(row_blocks * column_blocks, [&](std::int64_t index, int) {
    const std::int64_t first_row = index / column_blocks * most_rows;
    const std::int64_t first_column = index % column_blocks * kScaledColumns;
    body(Piece{first_row, std::min(most_rows, rows - first_row), first_column,
               static_cast<int>(std::min<std::int64_t>(kScaledColumns, columns - first_column))});
  });
}

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

// ---- tiles ----

// Rows of a piece: weights are widened once for all of them.
constexpr std::int64_t kTileRowBlock = 256;
constexpr std::int64_t kTileChunk = 512;
constexpr std::int64_t kBfloatsOfStep = kScaledStepBytes / 2;

bool has_float_scales(const ScaledLinear& linear) {
  return linear.x_scale.data != nullptr || linear.weight_scale.data != nullptr;
}

bool runs_on_tiles(const ScaledLinearKernels& kernels, const ScaledLinear& linear) {
  if (kernels.tiles == nullptr) return false;
  // Sums of i8 are exact, so one row may take another way, which is faster for it.
  if (linear.x.dtype == DType::i8) return linear.x.size[1] % kScaledStepBytes == 0 && linear.x.size[0] > 1;
  if (linear.x.dtype == DType::f4e2m1) return false;
  if (!has_float_scales(linear)) return true;
  const ScaleGrid &x = linear.x_scale, &weight = linear.weight_scale;
  return x.data != nullptr && weight.data != nullptr && x.group_rows == 1 && x.group_columns == weight.group_columns &&
         x.group_columns % kBfloatsOfStep == 0;
}

// Codes [first, first + count) of a row as bf16, and zeros up to whole steps.
void widen_to_bf16(const ScaledLinearKernels& kernels, const TensorView& codes, std::int64_t row, std::int64_t first,
                   std::int64_t count, std::uint16_t* to) {
  const auto widen = kernels.tiles->widen[static_cast<std::size_t>(code_of(codes.dtype))];
  widen(codes.data + row * codes.stride[0] + first, count, to);
}

// Packs the rows for ScaledTiles::x.
void pack_tile_rows(const ScaledLinearKernels& kernels, const ScaledLinear& linear, std::int64_t steps, std::byte* to,
                    ThreadPool& threads) {
  const std::int64_t rows = linear.x.size[0], depth = linear.x.size[1];
  const bool is_integer = linear.x.dtype == DType::i8;
  threads.run(padded(rows, kScaledTileRows) / kScaledTileRows, [&](std::int64_t tile, int) {
    auto* const words = reinterpret_cast<std::uint32_t*>(to + tile * steps * kScaledTileBytes);
    for (std::int64_t r = 0; r < kScaledTileRows; ++r) {
      const std::int64_t row = tile * kScaledTileRows + r;
      const std::int64_t chunk = is_integer ? kTileChunk * 2 : kTileChunk;
      for (std::int64_t k = 0; k < depth; k += chunk) {
        alignas(64) std::uint16_t values[kTileChunk] = {};
        const std::int64_t count = std::min(chunk, depth - k);
        if (row < rows && is_integer)
          std::memcpy(values, linear.x.data + row * linear.x.stride[0] + k, static_cast<std::size_t>(count));
        else if (row < rows)
          widen_to_bf16(kernels, linear.x, row, k, count, values);
        const std::int64_t first = is_integer ? k / 4 : k / 2;
        const std::int64_t words_of_chunk = is_integer ? count / 4 : padded(count, kBfloatsOfStep) / 2;
        for (std::int64_t i = 0; i < words_of_chunk; ++i)
          std::memcpy(words + (first + i) * kScaledTileRows + r, values + 2 * i, sizeof(std::uint32_t));
      }
    }
  });
}

// Adds the products of bf16, chunk by chunk; a chunk is in one group of f32 scales.
void add_bf16_tiles(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const Piece& piece,
                    ScaledTiles tiles) {
  constexpr std::int64_t stride = kTileChunk + kBfloatsOfStep;  // not a power of two, for the sets of the cache
  alignas(64) std::uint16_t weight[kScaledColumns * stride];
  const bool is_scaled = has_float_scales(linear);
  const std::int64_t depth = linear.x.size[1], group = is_scaled ? linear.weight_scale.group_columns : depth;
  const std::byte* const x = tiles.x;
  for (std::int64_t k = 0, end; k < depth; k = end) {
    end = std::min({depth, k + kTileChunk, (k / group + 1) * group});
    float column_scale[kScaledColumns] = {};
    for (int c = 0; c < piece.columns; ++c) {
      const std::int64_t column = piece.first_column + c;
      // Parts of rows are too short for the hardware to find those of the next columns in time.
      const std::byte* next = linear.weight.data + (column + kScaledColumns) * depth + k;
      for (std::int64_t i = 0; i < end - k; i += 64) __builtin_prefetch(next + i);
      widen_to_bf16(kernels, linear.weight, column, k, end - k, weight + c * stride);
      if (is_scaled) column_scale[c] = linear.weight_scale.at(column / linear.weight_scale.group_rows, k / group);
    }
    tiles.weight = reinterpret_cast<const std::byte*>(weight);
    tiles.weight_stride = stride * 2;
    tiles.x = x + k / kBfloatsOfStep * kScaledTileBytes;
    tiles.steps = padded(end - k, kBfloatsOfStep) / kBfloatsOfStep;
    if (is_scaled) {
      const ScaleGrid& scale = linear.x_scale;
      tiles.column_scale = column_scale;
      tiles.row_scale = scale.data + piece.first_row * scale.row_stride + k / group * scale.column_stride;
      tiles.row_scale_stride = scale.row_stride;
    }
    kernels.tiles->multiply(tiles);
  }
}

void run_on_tiles(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const KernelCall& call) {
  const std::int64_t depth = linear.x.size[1];
  const bool is_integer = linear.x.dtype == DType::i8;
  const std::int64_t steps = is_integer ? depth / kScaledStepBytes : padded(depth, kBfloatsOfStep) / kBfloatsOfStep;
  pack_tile_rows(kernels, linear, steps, call.scratch.data(), call.threads);
  for_each_piece(linear, kTileRowBlock, call.threads, [&](const Piece& piece) {
    alignas(64) float sums[kTileRowBlock * kScaledColumns];
    std::fill_n(sums, padded(piece.rows, kScaledTileRows) * kScaledColumns, 0.0f);
    const ScaledTiles tiles{.code = is_integer ? TileCode::i8 : TileCode::bf16,
                            .weight = linear.weight.data + piece.first_column * depth,
                            .weight_stride = depth,
                            .columns = piece.columns,
                            .x = call.scratch.data() + piece.first_row / kScaledTileRows * steps * kScaledTileBytes,
                            .x_steps = steps,
                            .steps = steps,
                            .rows = piece.rows,
                            .sums = sums};
    if (is_integer)
      kernels.tiles->multiply(tiles);
    else
      add_bf16_tiles(kernels, linear, piece, tiles);
    finish(kernels, linear, piece, sums);
  });
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

// Enough for rows of floats, which need more than integers, and for 16 rows of bf16.
Dim scaled_linear_scratch(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const std::int64_t depth = padded(x.shape[1].number(), kBfloatsOfStep);
  return (x.shape[0] + Dim(kScaledTileRows - 1)) * Dim(depth * static_cast<std::int64_t>(sizeof(float)));
}

void run_scaled_linear(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const KernelCall& call) {
  if (runs_on_tiles(kernels, linear)) return run_on_tiles(kernels, linear, call);
  auto* const x = reinterpret_cast<float*>(call.scratch.data());
  auto* const integers = reinterpret_cast<std::int16_t*>(call.scratch.data());
  const bool is_integer = linear.x.dtype == DType::i8;
  if (is_integer) {
    widen_integers(linear.x, integers, call.threads);
  } else {
    widen_all(kernels, linear, x, call.threads);
  }
  for_each_piece(linear, kRowBlock, call.threads, [&](const Piece& piece) {
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
