#include "ir/sample.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "tensor/batch.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"

namespace weft {
namespace {

// A counter-based generator (splitmix64): element i of a tensor does not depend on the distributions of the standard
// library.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t seed, std::uint64_t index) {
  return static_cast<double>(mixed(seed * 0x2545F4914F6CDD1Dull + index) >> 11) * 0x1p-53;
}

// The sum of twelve uniforms is close enough to a normal distribution and needs additions only.
double normal(std::uint64_t seed, std::uint64_t index) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(seed, index * 12 + i);
  return sum;
}

double value(const SampleTensor& sample, bool integral, std::uint64_t seed, std::uint64_t index, std::int64_t count) {
  switch (sample.fill) {
    case Fill::normal:
      return normal(seed, index);
    case Fill::positive:
      return 0.1 + 1.9 * uniform(seed, index);
    case Fill::indices: {
      if (sample.limit > 0) return std::floor(uniform(seed, index) * static_cast<double>(sample.limit));
      return static_cast<double>((index * 7 + 3) % static_cast<std::uint64_t>(count));
    }
    case Fill::codes:
      return integral ? std::floor(uniform(seed, index) * 255) - 127 : 0.001 + 0.099 * uniform(seed, index);
    case Fill::zero:
      return 0;
  }
  return 0;
}

// Formats that are only read get random bytes, drawn again until the largest value of the block is of this magnitude.
constexpr float kLeastLargest = 0.125f, kGreatestLargest = 1.0f;

void draw_block(DType dtype, std::uint64_t seed, std::byte* block) {
  const DTypeInfo& info = dtype_info(dtype);
  for (std::uint64_t index = 0;;) {
    for (std::int64_t i = 0; i < info.block_bytes; ++i) block[i] = static_cast<std::byte>(mixed(mixed(seed) + index++));
    float values[kMaxBlockElements];
    dequantize_row(dtype, block, values, info.block_elements);
    float largest = 0;
    for (std::int64_t i = 0; i < info.block_elements && std::isfinite(largest); ++i)
      largest = std::isnan(values[i]) ? INFINITY : std::max(largest, std::fabs(values[i]));
    if (largest >= kLeastLargest && largest <= kGreatestLargest) return;
  }
}

Tensor random_blocks(const Meta& meta, std::uint64_t seed) {
  Tensor tensor = Tensor::empty(meta);
  const std::int64_t elements = element_count(meta.shape).number();
  if (block_format(meta.dtype).quantize == nullptr) {
    const DTypeInfo& info = dtype_info(meta.dtype);
    for (std::int64_t block = 0; block < elements / info.block_elements; ++block)
      draw_block(meta.dtype, mixed(seed) + static_cast<std::uint64_t>(block), tensor.data() + block * info.block_bytes);
    return tensor;
  }
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(normal(seed, i));
  quantize_row(meta.dtype, values.data(), tensor.data(), elements);
  return tensor;
}

}  // namespace

SampleTensor SampleTensor::pages(std::string name, KvLayout layout, std::int64_t count) {
  SampleTensor sample(std::move(name), {count}, layout.dtype);
  sample.kind = MetaKind::kv;
  sample.kv = layout;
  return sample;
}

SampleTensor SampleTensor::batch(std::string name, std::vector<std::pair<int, int>> rows_and_length, int block) {
  SampleTensor sample(std::move(name), {}, DType::i32);
  sample.kind = MetaKind::batch;
  sample.kv.block = block;
  sample.rows_and_length = std::move(rows_and_length);
  return sample;
}

bool Sample::is_generic() const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const SampleTensor& tensor) { return !tensor.dtype && tensor.kind == MetaKind::tensor; });
}

Meta sample_meta(const SampleTensor& sample, DType dtype_under_test) {
  if (sample.kind == MetaKind::batch) return Meta::batch();
  if (sample.kind == MetaKind::kv) return Meta::pages(sample.kv);
  return Meta::tensor(sample.dtype.value_or(dtype_under_test), Shape(sample.shape.begin(), sample.shape.end()));
}

Tensor make_sample_tensor(const SampleTensor& sample, DType dtype_under_test, std::uint64_t seed) {
  if (sample.kind == MetaKind::batch) return make_batch(sample.rows_and_length, static_cast<int>(sample.kv.block));
  const Meta meta = sample_meta(sample, dtype_under_test);
  const DType dtype = sample.dtype.value_or(dtype_under_test);
  if (sample.kind == MetaKind::kv) {
    Tensor pages = Tensor::empty(meta, sample.shape[0]);
    const std::int64_t count = sample.shape[0] * kv_page_elements(sample.kv);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(normal(seed, static_cast<std::uint64_t>(i))));
    if (is_block(dtype)) {
      quantize_row(dtype, values.data(), pages.data(), count);
    } else {
      convert_row(DType::f32, reinterpret_cast<const std::byte*>(values.data()), dtype, pages.data(), count);
    }
    return pages;
  }
  if (is_block(dtype)) return random_blocks(meta, seed);
  Tensor tensor = Tensor::empty(meta);
  const std::int64_t count = element_count(meta.shape).number();
  const bool integral = dtype_info(dtype).kind != DTypeKind::floating;
  for (std::int64_t i = 0; i < count; ++i)
    store_float(dtype, tensor.data(), i,
                static_cast<float>(value(sample, integral, seed, static_cast<std::uint64_t>(i), count)));
  return tensor;
}

}  // namespace weft
