// linear and linear_int8, exactly as their definitions say.

#include <cmath>
#include <vector>

#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/blocks.h"
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

// One block of 32: the integer codes as the dot product takes them, d, and m (q4_1).
struct Block {
  int codes[32];
  float d = 0;
  float m = 0;
};

float half_at(const std::byte* data) { return load_float(DType::f16, data, 0); }

Block read_block(DType dtype, const std::byte* data) {
  Block block;
  block.d = half_at(data);
  const bool has_minimum = dtype == DType::q4_1;
  if (has_minimum) block.m = half_at(data + 2);
  const std::byte* codes = data + (has_minimum ? 4 : 2);
  for (int i = 0; i < 32; ++i) {
    if (dtype == DType::q8_0) {
      block.codes[i] = static_cast<std::int8_t>(codes[i]);
    } else {
      const int byte = std::to_integer<int>(codes[i % 16]);
      block.codes[i] = (i < 16 ? byte & 15 : byte >> 4) - (dtype == DType::q4_0 ? 8 : 0);
    }
  }
  return block;
}

void linear_int8(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& scale = call.operands[1];
  const TensorView& weight = call.operands[2];
  const TensorView& y = call.results[0];
  const std::int64_t groups = weight.size[1] / 32, block_bytes = dtype_info(weight.dtype).block_bytes;
  for (std::int64_t n = 0; n < weight.size[0]; ++n) {
    std::vector<Block> blocks;
    for (std::int64_t g = 0; g < groups; ++g)
      blocks.push_back(read_block(weight.dtype, weight.data + (n * groups + g) * block_bytes));
    for (std::int64_t row = 0; row < x.size[0]; ++row) {
      float f = 0;
      for (std::int64_t g = 0; g < groups; ++g) {
        const Block& block = blocks[static_cast<std::size_t>(g)];
        int dot = 0, sum = 0;
        for (int i = 0; i < 32; ++i) {
          const int code = x.as<std::int8_t>()[row * x.stride[0] + (g * 32 + i) * x.stride[1]];
          dot += block.codes[i] * code;
          sum += code;
        }
        const float s = scale.as<float>()[row * scale.stride[0] + g * scale.stride[1]];
        f = std::fma(static_cast<float>(dot), block.d * s, f);
        if (weight.dtype == DType::q4_1) f = std::fma(block.m, s * static_cast<float>(sum), f);
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
}
