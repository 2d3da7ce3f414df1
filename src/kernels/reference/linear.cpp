// linear, linear_int8, grouped_linear, grouped_linear_int8 and batched_linear, exactly as their definitions say.

#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"

namespace weft {
namespace {

std::vector<float> weight_row(const TensorView& weight, std::int64_t row) {
  const std::int64_t width = weight.size[1];
  std::vector<float> values(static_cast<std::size_t>(width));
  if (is_block(weight.dtype)) {
    dequantize_row(weight.dtype, weight.data + row * bytes_of(weight.dtype, width), values.data(), width);
    return values;
  }
  for (std::int64_t k = 0; k < width; ++k)
    values[static_cast<std::size_t>(k)] =
        load_float(weight.dtype, weight.data, row * weight.stride[0] + k * weight.stride[1]);
  return values;
}

void linear(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& weight = call.operands[1];
  const TensorView& bias = call.operands[2];
  const TensorView& y = call.results[0];
  const std::int64_t width = weight.size[1];
  std::int64_t rows_size[kMaxRank];
  for (int i = 0; i + 1 < x.rank; ++i) rows_size[i] = x.size[i];
  for (std::int64_t n = 0; n < weight.size[0]; ++n) {
    const std::vector<float> w = weight_row(weight, n);
    const float shift = bias.present() ? load_float(bias.dtype, bias.data, n * bias.stride[0]) : 0.0f;
    for_each_index(rows_size, x.rank - 1, [&](const std::int64_t* index) {
      std::int64_t from = 0, to = n * y.stride[y.rank - 1];
      for (int i = 0; i + 1 < x.rank; ++i) {
        from += index[i] * x.stride[i];
        to += index[i] * y.stride[i];
      }
      // Element k belongs to partial sum k % 4. Tests found this order in torch's CPU product in f32.
      float parts[4] = {};
      for (std::int64_t k = 0; k < width; ++k)
        parts[k % 4] += load_float(x.dtype, x.data, from + k * x.stride[x.rank - 1]) * w[static_cast<std::size_t>(k)];
      const float sum = (parts[0] + parts[2]) + (parts[1] + parts[3]);
      store_float(y.dtype, y.data, to, bias.present() ? sum + shift : sum);
    });
  }
}

// Matrix `index` of a stack.
TensorView matrix_of(const TensorView& stack, std::int64_t index) {
  TensorView matrix = stack;
  matrix.data += bytes_of(stack.dtype, index * stack.stride[0]);
  for (int i = 0; i < 2; ++i) {
    matrix.size[i] = stack.size[i + 1];
    matrix.stride[i] = stack.stride[i + 1];
  }
  matrix.rank = 2;
  return matrix;
}

// The product of elements of x from `from` on, `stride` apart, and a row of a weight, summed as in linear.
float product_sum(const TensorView& x, std::int64_t from, std::int64_t stride, const std::vector<float>& w) {
  float parts[4] = {};
  for (std::size_t k = 0; k < w.size(); ++k)
    parts[k % 4] += load_float(x.dtype, x.data, from + static_cast<std::int64_t>(k) * stride) * w[k];
  return (parts[0] + parts[2]) + (parts[1] + parts[3]);
}

void batched_linear(const KernelCall& call) {
  const TensorView &x = call.operands[0], &weight = call.operands[1], &y = call.results[0];
  for (std::int64_t head = 0; head < x.size[1]; ++head) {
    const TensorView own = matrix_of(weight, head);
    for (std::int64_t n = 0; n < own.size[0]; ++n) {
      const std::vector<float> w = weight_row(own, n);
      for (std::int64_t row = 0; row < x.size[0]; ++row)
        store_float(y.dtype, y.data, row * y.stride[0] + head * y.stride[1] + n * y.stride[2],
                    product_sum(x, row * x.stride[0] + head * x.stride[1], x.stride[2], w));
    }
  }
}

std::int64_t expert_of_row(const char* op, const TensorView& experts, std::int64_t row, std::int64_t count) {
  const std::int64_t expert = load_integer(experts.dtype, experts.data, row * experts.stride[0]);
  USER_CHECK(expert >= 0 && expert < count, "[{}] expert {} is outside [0, {})", op, expert, count);
  return expert;
}

float bias_of_expert(const TensorView& bias, std::int64_t expert, std::int64_t column) {
  return load_float(bias.dtype, bias.data, expert * bias.stride[0] + column * bias.stride[1]);
}

void grouped_linear(const KernelCall& call) {
  const TensorView &x = call.operands[0], &bias = call.operands[3];
  const TensorView &y = call.results[0], &weight = call.operands[1];
  const std::int64_t columns = weight.size[1];
  for (std::int64_t row = 0; row < x.size[0]; ++row) {
    const std::int64_t expert = expert_of_row("grouped_linear", call.operands[2], row, weight.size[0]);
    const TensorView own = matrix_of(weight, expert);
    for (std::int64_t n = 0; n < columns; ++n) {
      float sum = product_sum(x, row * x.stride[0], x.stride[1], weight_row(own, n));
      if (bias.present()) sum += bias_of_expert(bias, expert, n);
      store_float(y.dtype, y.data, row * y.stride[0] + n * y.stride[1], sum);
    }
  }
}

// Elements of x with one scale.
constexpr std::int64_t kGroupOfX = 32;

// Row `row` of a [rows, depth] of codes with scales, times an unpacked row of a weight: the definition of linear_int8.
float product_of_codes(const TensorView& x, const TensorView& scale, std::int64_t row, const BlockFormat& format,
                       const UnpackedRow& unpacked) {
  float f = 0;
  for (std::int64_t g = 0; g < x.size[1] / format.group; ++g) {
    int dot = 0, sum = 0;
    for (std::int64_t i = g * format.group; i < (g + 1) * format.group; ++i) {
      const int code = x.as<std::int8_t>()[row * x.stride[0] + i * x.stride[1]];
      dot += unpacked.codes[static_cast<std::size_t>(i)] * code;
      sum += code;
    }
    const std::int64_t group_of_x = g * format.group / kGroupOfX;
    const float s = scale.as<float>()[row * scale.stride[0] + group_of_x * scale.stride[1]];
    f = std::fma(static_cast<float>(dot), unpacked.scales[static_cast<std::size_t>(g)] * s, f);
    if (format.has_minimums)
      f = std::fma(unpacked.minimums[static_cast<std::size_t>(g)], s * static_cast<float>(sum), f);
  }
  return f;
}

void linear_int8(const KernelCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1], &weight = call.operands[2];
  const TensorView& y = call.results[0];
  const BlockFormat& format = block_format(weight.dtype);
  const std::int64_t depth = weight.size[1], row_bytes = bytes_of(weight.dtype, depth);
  for (std::int64_t n = 0; n < weight.size[0]; ++n) {
    const UnpackedRow unpacked = unpack_row(format, weight.data + n * row_bytes, depth);
    for (std::int64_t row = 0; row < x.size[0]; ++row)
      store_float(y.dtype, y.data, row * y.stride[0] + n * y.stride[1],
                  product_of_codes(x, scale, row, format, unpacked));
  }
}

void grouped_linear_int8(const KernelCall& call) {
  const TensorView &x = call.operands[0], &scale = call.operands[1], &weight = call.operands[2];
  const TensorView &bias = call.operands[4], &y = call.results[0];
  const BlockFormat& format = block_format(weight.dtype);
  const std::int64_t columns = weight.size[1], depth = weight.size[2], row_bytes = bytes_of(weight.dtype, depth);
  for (std::int64_t row = 0; row < x.size[0]; ++row) {
    const std::int64_t expert = expert_of_row("grouped_linear_int8", call.operands[3], row, weight.size[0]);
    for (std::int64_t n = 0; n < columns; ++n) {
      const std::byte* blocks = weight.data + (expert * columns + n) * row_bytes;
      float sum = product_of_codes(x, scale, row, format, unpack_row(format, blocks, depth));
      if (bias.present()) sum += bias_of_expert(bias, expert, n);
      store_float(y.dtype, y.data, row * y.stride[0] + n * y.stride[1], sum);
    }
  }
}

}  // namespace
}  // namespace weft

KERNELS(reference, linear) {
  registry.add({.op = "linear", .provider = "reference", .supports = none_is_packed, .run = linear});
  registry.add({.op = "linear_int8", .provider = "reference", .supports = none_is_packed, .run = linear_int8});
  registry.add({.op = "grouped_linear", .provider = "reference", .supports = none_is_packed, .run = grouped_linear});
  registry.add(
      {.op = "grouped_linear_int8", .provider = "reference", .supports = none_is_packed, .run = grouped_linear_int8});
  registry.add({.op = "batched_linear", .provider = "reference", .supports = none_is_packed, .run = batched_linear});
}
