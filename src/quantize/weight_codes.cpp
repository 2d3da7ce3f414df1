#include "quantize/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

constexpr float kLargestFp8 = 448, kLargestInt8 = 127, kLargestFp4 = 6;
constexpr float kLeastInt4 = -8, kLargestInt4 = 7, kHalfRangeOfInt4 = 7.5F;
constexpr float kLeastFp8Scale = 1 / (kLargestFp8 * 512);
constexpr float kLeastInt8Scale = 1.19e-7F;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

float magnitude_of(const float* values, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  return largest;
}

const std::byte* bytes_at(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// Divides `count` values by the scale and converts them to codes. convert_row truncates to integers, so they are
// rounded before.
void store_codes(const float* values, float scale, DType dtype, std::byte* codes, std::int64_t count) {
  std::vector<float> scaled(static_cast<std::size_t>(count));
  const bool is_int8 = dtype == DType::i8;
  const float limit = is_int8 ? kLargestInt8 : kLargestFp8;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = std::min(std::max(values[i] / scale, -limit), limit);
    scaled[static_cast<std::size_t>(i)] = is_int8 ? std::nearbyint(value) : value;
  }
  convert_row(DType::f32, bytes_at(scaled), dtype, codes, count);
}

}  // namespace

float nvfp4_global_scale(float magnitude) {
  // If all values are zero, any scale is correct; the minimum avoids a division by zero.
  constexpr float kLeastMagnitude = 0x1p-20F;
  return kLargestFp8 * kLargestFp4 / std::max(magnitude, kLeastMagnitude);
}

float fp8_scale(float magnitude) { return std::max(magnitude / kLargestFp8, kLeastFp8Scale); }

float largest_magnitude(const Tensor& weight, const std::string& where, ThreadPool& threads) {
  constexpr std::int64_t kChunk = 1 << 16;
  const std::int64_t count = element_count(weight.meta.shape).number(), chunks = ceil_div(count, kChunk);
  std::vector<float> largest(static_cast<std::size_t>(chunks));
  threads.run(chunks, [&](std::int64_t chunk, int) {
    const std::int64_t begin = chunk * kChunk, end = std::min(count, begin + kChunk);
    float& most = largest[static_cast<std::size_t>(chunk)];
    for (std::int64_t i = begin; i < end; ++i) {
      const float magnitude = std::fabs(weight.as<float>()[i]);
      // A comparison with NaN is false, so in this form a NaN replaces the maximum.
      if (!(magnitude <= most)) most = magnitude;
      if (std::isnan(most)) break;
    }
  });
  float most = 0;
  for (const float one : largest)
    if (!(one <= most)) most = one;
  USER_CHECK(std::isfinite(most), "[{}] must hold finite numbers, but has {}", where, most);
  return most;
}

CodesAndScales quantize_blocks(const Tensor& weight, DType dtype, std::int64_t rows, std::int64_t columns,
                               ThreadPool& threads) {
  const std::int64_t height = weight.meta.shape[0].number(), width = weight.meta.shape[1].number();
  const std::int64_t down = ceil_div(height, rows), across = ceil_div(width, columns);
  const bool is_int8 = dtype == DType::i8;
  CodesAndScales result{Tensor::empty(Meta::tensor(dtype, weight.meta.shape)),
                        Tensor::empty(Meta::tensor(DType::f32, {down, across}))};
  threads.run(down, [&](std::int64_t block_row, int) {
    const std::int64_t first = block_row * rows, last = std::min(height, first + rows);
    for (std::int64_t block = 0; block < across; ++block) {
      const std::int64_t begin = block * columns, count = std::min(width, begin + columns) - begin;
      float most = 0;
      for (std::int64_t row = first; row < last; ++row)
        most = std::max(most, magnitude_of(weight.as<float>() + row * width + begin, count));
      const float scale = is_int8 ? std::max(most / kLargestInt8, kLeastInt8Scale) : fp8_scale(most);
      result.scales.as<float>()[block_row * across + block] = scale;
      for (std::int64_t row = first; row < last; ++row)
        store_codes(weight.as<float>() + row * width + begin, scale, dtype, result.codes.data() + row * width + begin,
                    count);
    }
  });
  return result;
}

CodesAndScales quantize_nvfp4(const Tensor& weight, float global_scale, ThreadPool& threads) {
  const float inverse = 1 / global_scale;
  const std::int64_t height = weight.meta.shape[0].number(), width = weight.meta.shape[1].number();
  CHECK(width % kNvfp4Group == 0, "rows of NVFP4 are whole blocks of 16");
  CodesAndScales result{Tensor::empty(Meta::tensor(DType::u8, {height, width / 2})),
                        Tensor::empty(Meta::tensor(DType::f8e4m3, {height, width / kNvfp4Group}))};
  threads.run(height, [&](std::int64_t row, int) {
    const float* values = weight.as<float>() + row * width;
    std::byte* scales = result.scales.data() + row * (width / kNvfp4Group);
    std::vector<float> scaled(static_cast<std::size_t>(width));
    for (std::int64_t block = 0; block < width / kNvfp4Group; ++block) {
      const float most = magnitude_of(values + block * kNvfp4Group, kNvfp4Group);
      store_float(DType::f8e4m3, scales, block, std::min(most * (1 / kLargestFp4) * global_scale, kLargestFp8));
      const float scale = load_float(DType::f8e4m3, scales, block);
      const float factor = scale == 0 ? 0 : 1 / (scale * inverse);
      for (std::int64_t i = block * kNvfp4Group; i < (block + 1) * kNvfp4Group; ++i)
        scaled[static_cast<std::size_t>(i)] = std::min(std::max(values[i] * factor, -kLargestFp4), kLargestFp4) + 0.0F;
    }
    convert_row(DType::f32, bytes_at(scaled), DType::f4e2m1, result.codes.data() + row * (width / 2), width);
  });
  return result;
}

CodesAndScales quantize_int4(const Tensor& weight, std::int64_t group, ThreadPool& threads) {
  constexpr std::int64_t kCodesOfWord = 8;
  constexpr float kScaleOfZeros = 0x1p-7F;
  const std::int64_t height = weight.meta.shape[0].number(), width = weight.meta.shape[1].number();
  CHECK(width % group == 0 && group % kCodesOfWord == 0, "rows of int4 are whole groups of {}", group);
  CodesAndScales result{Tensor::empty(Meta::tensor(DType::i32, {height, width / kCodesOfWord})),
                        Tensor::empty(Meta::tensor(DType::bf16, {height, width / group}))};
  threads.run(height, [&](std::int64_t row, int) {
    const float* values = weight.as<float>() + row * width;
    std::byte* scales = result.scales.data() + row * (width / group) * 2;
    auto* words = result.codes.as<std::uint32_t>() + row * (width / kCodesOfWord);
    std::fill_n(words, width / kCodesOfWord, 0);
    for (std::int64_t i = 0; i < width; ++i) {
      if (i % group == 0)
        store_float(DType::bf16, scales, i / group, magnitude_of(values + i, group) / kHalfRangeOfInt4);
      const float scale = load_float(DType::bf16, scales, i / group);
      if (scale == 0) store_float(DType::bf16, scales, i / group, kScaleOfZeros);
      const float code = scale == 0 ? 0 : std::nearbyint(values[i] / scale);
      const auto stored = static_cast<std::uint32_t>(std::min(std::max(code, kLeastInt4), kLargestInt4) - kLeastInt4);
      words[i / kCodesOfWord] |= stored << i % kCodesOfWord * 4;
    }
  });
  return result;
}

}  // namespace weft
