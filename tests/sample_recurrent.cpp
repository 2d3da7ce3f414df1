#include "tests/sample_recurrent.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace weft {
namespace {

Tensor with_shape(const Tensor& tensor, Shape shape) {
  Tensor result = tensor;
  result.meta = Meta::tensor(tensor.meta.dtype, std::move(shape));
  return result;
}

// Row i of the result is row order[i].
Tensor reordered_rows(const Tensor& tensor, const std::vector<std::int64_t>& order) {
  const std::int64_t width = element_count(tensor.meta.shape).number() / tensor.meta.shape[0].number();
  Shape shape = tensor.meta.shape;
  shape[0] = static_cast<std::int64_t>(order.size());
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, shape));
  for (std::size_t row = 0; row < order.size(); ++row)
    std::memcpy(result.as<float>() + static_cast<std::int64_t>(row) * width, tensor.as<float>() + order[row] * width,
                static_cast<std::size_t>(width) * sizeof(float));
  return result;
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), first);
  return result;
}

void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Rows of `width` for each value head, in the order in which the first value heads of all key heads come first.
// `before` rows stay in front.
std::vector<std::int64_t> tiled(const RecurrentConfig& c, std::int64_t before, std::int64_t width) {
  std::vector<std::int64_t> order = numbers(0, before);
  const std::int64_t shared = c.value_heads / c.key_heads;
  for (std::int64_t i = 0; i < shared; ++i)
    for (std::int64_t key = 0; key < c.key_heads; ++key)
      append(order, numbers(before + (key * shared + i) * width, width));
  return order;
}

// The parts of rows that are sorted by key head, one part after another.
NamedWeights parts_of_joined(const Tensor& tensor, const RecurrentConfig& c) {
  const std::int64_t values = c.values_width() / c.key_heads, group = 2 * c.key_dim + 2 * values;
  std::vector<std::int64_t> mixed, gates;
  for (const auto& [first, count] :
       {std::pair(std::int64_t{0}, c.key_dim), {c.key_dim, c.key_dim}, {2 * c.key_dim, values}})
    for (std::int64_t head = 0; head < c.key_heads; ++head) append(mixed, numbers(head * group + first, count));
  for (std::int64_t head = 0; head < c.key_heads; ++head)
    append(gates, numbers(head * group + 2 * c.key_dim + values, values));
  return {{"attn_qkv", reordered_rows(tensor, mixed)}, {"attn_gate", reordered_rows(tensor, gates)}};
}

Tensor minus_exp(const Tensor& tensor) {
  Tensor result = Tensor::empty(tensor.meta);
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i)
    result.as<float>()[i] = -std::exp(tensor.as<float>()[i]);
  return result;
}

// Qwen 3.5's value heads in the order of its GGUF files.
Tensor with_tiled_values(const std::string& name, const Tensor& tensor, const RecurrentConfig& c) {
  if (name == "ssm_qkv" || name == "ssm_conv1d")
    return reordered_rows(tensor, tiled(c, 2 * c.keys_width(), c.value_dim));
  if (name == "ssm_gate") return reordered_rows(tensor, tiled(c, 0, c.value_dim));
  if (name == "ssm_out") return transposed(reordered_rows(transposed(tensor), tiled(c, 0, c.value_dim)));
  return name == "ssm_norm" ? tensor : reordered_rows(tensor, tiled(c, 0, 1));
}

}  // namespace

bool is_recurrent_weight(const std::string& name) { return name.starts_with("ssm_") || name.starts_with("shortconv_"); }

NamedWeights recurrent_weights_in_gguf(const std::string& name, const std::string& gguf_name, const Tensor& tensor,
                                       const ModelConfig& config, bool is_early) {
  const RecurrentConfig& c = *config.recurrent;
  Tensor stored = name == "ssm_a" ? minus_exp(tensor) : tensor;
  if (c.kind == RecurrentKind::gated_delta && !c.is_grouped) stored = with_tiled_values(name, stored, c);
  if (name == "ssm_conv1d" || name == "shortconv_conv")
    stored = with_shape(stored, {stored.meta.shape[0], stored.meta.shape.back()});
  if (c.kind == RecurrentKind::mamba2 && (name == "ssm_a" || name == "ssm_d"))
    stored = with_shape(stored, {c.value_heads, 1});
  if (c.kind == RecurrentKind::mamba2 && name == "ssm_norm")
    stored = with_shape(stored, {c.key_heads, c.values_width() / c.key_heads});
  if (name != "ssm_qkvz" || is_early) return {{gguf_name, stored}};
  NamedWeights parts = parts_of_joined(stored, c);
  for (auto& [part, rows] : parts) part = std::string(gguf_name).replace(gguf_name.find("ssm_in"), 6, part);
  return parts;
}

}  // namespace weft
