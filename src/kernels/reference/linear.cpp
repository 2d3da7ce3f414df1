// linear, linear_int8 and grouped_linear, exactly as their definitions say.

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

// Element (expert, n, k) of the weight is element (expert * N + n, k) of a matrix.
void grouped_linear(const KernelCall& call) {
  const TensorView &x = call.operands[0], &experts = call.operands[2], &bias = call.operands[3];
  const TensorView& y = call.results[0];
  TensorView weight = call.operands[1];
  const std::int64_t count = weight.size[0], columns = weight.size[1], depth = weight.size[2];
  const std::int64_t of_expert = weight.stride[0];
  weight.size[0] = columns;
  weight.size[1] = depth;
  weight.stride[0] = weight.stride[1];
  weight.stride[1] = weight.stride[2];
  weight.rank = 2;
  for (std::int64_t row = 0; row < x.size[0]; ++row) {
    const std::int64_t expert = load_integer(experts.dtype, experts.data, row * experts.stride[0]);
    USER_CHECK(expert >= 0 && expert < count, "[grouped_linear] expert {} is outside [0, {})", expert, count);
    weight.data = call.operands[1].data + bytes_of(weight.dtype, expert * of_expert);
    for (std::int64_t n = 0; n < columns; ++n) {
      const std::vector<float> w = weight_row(weight, n);
      float parts[4] = {};
      for (std::int64_t k = 0; k < depth; ++k)
        parts[k % 4] +=
            load_float(x.dtype, x.data, row * x.stride[0] + k * x.stride[1]) * w[static_cast<std::size_t>(k)];
      float sum = (parts[0] + parts[2]) + (parts[1] + parts[3]);
      if (bias.present()) sum += load_float(bias.dtype, bias.data, expert * bias.stride[0] + n * bias.stride[1]);
      store_float(y.dtype, y.data, row * y.stride[0] + n * y.stride[1], sum);
    }
  }
}

// Elements of x with one scale.
constexpr std::int64_t kGroupOfX = 32;

void linear_int8(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& scale = call.operands[1];
  const TensorView& weight = call.operands[2];
  const TensorView& y = call.results[0];
  const BlockFormat& format = block_format(weight.dtype);
  const std::int64_t depth = weight.size[1], row_bytes = bytes_of(weight.dtype, depth);
  for (std::int64_t n = 0; n < weight.size[0]; ++n) {
    const UnpackedRow unpacked = unpack_row(format, weight.data + n * row_bytes, depth);
    for (std::int64_t row = 0; row < x.size[0]; ++row) {
      float f = 0;
      for (std::int64_t g = 0; g < depth / format.group; ++g) {
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
      store_float(y.dtype, y.data, row * y.stride[0] + n * y.stride[1], f);
    }
  }
}

}  // namespace
}  // namespace weft

KERNELS(reference, linear) {
  registry.add({.op = "linear", .provider = "reference", .supports = none_is_packed, .run = linear});
  registry.add({.op = "linear_int8", .provider = "reference", .supports = none_is_packed, .run = linear_int8});
  registry.add({.op = "grouped_linear", .provider = "reference", .supports = none_is_packed, .run = grouped_linear});
}
