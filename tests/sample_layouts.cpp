#include "tests/sample_layouts.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace weft {
namespace {

// Copies `count` rows of each head: from row `from` of `from_rows` to row `to` of `to_rows`.
void copy_rows_of_heads(const Tensor& source, std::int64_t from, std::int64_t from_rows, Tensor& target,
                        std::int64_t to, std::int64_t to_rows, std::int64_t count, const ModelConfig& config) {
  const std::int64_t width = config.latents->rank;
  for (std::int64_t head = 0; head < config.head_count; ++head)
    std::memcpy(target.as<float>() + (head * to_rows + to) * width,
                source.as<float>() + (head * from_rows + from) * width,
                static_cast<std::size_t>(count * width) * sizeof(float));
}

}  // namespace

Tensor transposed(const Tensor& stack) {
  Meta meta = stack.meta;
  const std::int64_t rows = meta.shape[meta.rank() - 2].number(), columns = meta.shape.back().number();
  std::swap(meta.shape[meta.rank() - 2], meta.shape.back());
  Tensor result = Tensor::empty(meta);
  for (std::int64_t i = 0; i < element_count(stack.meta.shape).number(); ++i) {
    const std::int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    result.as<float>()[(matrix * columns + column) * rows + row] = stack.as<float>()[i];
  }
  return result;
}

Tensor halves_from_pairs(const Tensor& tensor) {
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t rows = tensor.meta.shape[1].number();
  const std::int64_t width = tensor.meta.rank() == 3 ? tensor.meta.shape[2].number() : 1;
  for (std::int64_t row = 0; row < element_count(tensor.meta.shape).number() / width; ++row) {
    const std::int64_t of_stack = row / rows, pair = row % rows / 2, half = row % 2;
    std::memcpy(result.as<float>() + (of_stack * rows + half * rows / 2 + pair) * width,
                tensor.as<float>() + row * width, static_cast<std::size_t>(width) * sizeof(float));
  }
  return result;
}

LatentParts latent_parts(const Tensor& rows, const ModelConfig& config) {
  const LatentConfig& l = *config.latents;
  const std::int64_t all = l.plain_dim + l.value_dim;
  Tensor keys = Tensor::empty(Meta::tensor(DType::f32, {config.head_count, l.plain_dim, l.rank}));
  Tensor values = Tensor::empty(Meta::tensor(DType::f32, {config.head_count, l.value_dim, l.rank}));
  copy_rows_of_heads(rows, 0, all, keys, 0, l.plain_dim, l.plain_dim, config);
  copy_rows_of_heads(rows, l.plain_dim, all, values, 0, l.value_dim, l.value_dim, config);
  return {transposed(keys), values};
}

Tensor rows_of_latent_parts(const LatentParts& parts, const ModelConfig& config) {
  const LatentConfig& l = *config.latents;
  const std::int64_t all = l.plain_dim + l.value_dim;
  Tensor rows = Tensor::empty(Meta::tensor(DType::f32, {config.head_count * all, l.rank}));
  copy_rows_of_heads(transposed(parts.keys), 0, l.plain_dim, rows, 0, all, l.plain_dim, config);
  copy_rows_of_heads(parts.values, 0, l.value_dim, rows, l.plain_dim, all, l.value_dim, config);
  return rows;
}

Tensor neighbours_from_halves(const Tensor& tensor, int heads) {
  Tensor result = Tensor::empty(tensor.meta);
  const bool is_bias = tensor.meta.rank() == 1;
  const std::int64_t width = is_bias ? 1 : tensor.meta.shape[1].number(), rows = tensor.meta.shape[0].number();
  const std::int64_t dims = rows / heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row / dims, pair = row % dims / 2, half = row % 2;
    std::memcpy(result.as<float>() + row * width, tensor.as<float>() + (head * dims + half * dims / 2 + pair) * width,
                static_cast<std::size_t>(width) * sizeof(float));
  }
  return result;
}

namespace {

// The rows of each matrix of one stack, then those of the other.
Tensor joined_stacks(const Tensor& first, const Tensor& second) {
  Meta meta = first.meta;
  meta.shape[1] = meta.shape[1] + second.meta.shape[1];
  Tensor result = Tensor::empty(meta);
  const std::int64_t count = meta.shape[0].number();
  const std::int64_t bytes = first.meta.bytes().number() / count, more = second.meta.bytes().number() / count;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(result.data() + i * (bytes + more), first.data() + i * bytes, static_cast<std::size_t>(bytes));
    std::memcpy(result.data() + i * (bytes + more) + bytes, second.data() + i * more, static_cast<std::size_t>(more));
  }
  return result;
}

}  // namespace

NamedWeights weights_in_modules(const NamedWeights& weights) {
  NamedWeights result;
  for (const auto& [name, weight] : weights) {
    std::string own = name;
    if (const std::size_t at = own.find("block_sparse_moe"); at != std::string::npos) own.replace(at, 16, "mlp");
    const std::size_t at = own.find("experts.0.");
    if (at == std::string::npos) {
      result.emplace_back(own, weight);
      continue;
    }
    const std::string part = own.substr(at + std::string_view("experts.0.").size());
    const bool is_down = part.starts_with("down") || part.starts_with("w2");
    own = own.substr(0, at) + "experts." + (is_down ? "down_proj" : "gate_up_proj");
    const auto gate = std::find_if(result.begin(), result.end(), [&](const auto& one) { return one.first == own; });
    if (gate == result.end()) {
      result.emplace_back(own, weight);
    } else {
      gate->second = joined_stacks(gate->second, weight);
    }
  }
  return result;
}

Tensor ungrouped_rows(const Tensor& tensor, const ModelConfig& config) {
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t heads = config.head_count, keys = config.kv_head_count, queries = heads / keys;
  const std::int64_t size = config.head_dim * (tensor.meta.rank() == 2 ? tensor.meta.shape[1].number() : 1);
  const auto copy = [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(tensor.as<const float>() + from * size, count * size, result.as<float>() + to * size);
  };
  for (std::int64_t key = 0; key < keys; ++key) {
    const std::int64_t first = key * (queries + 2);
    copy(key * queries, first, queries);
    copy(heads + key, first + queries, 1);
    copy(heads + keys + key, first + queries + 1, 1);
  }
  return result;
}

Tensor joined_rows(const Tensor& first, const Tensor& second) {
  Meta meta = first.meta;
  meta.shape[0] = meta.shape[0] + second.meta.shape[0];
  Tensor result = Tensor::empty(meta);
  const auto bytes = static_cast<std::size_t>(first.meta.bytes().number());
  std::memcpy(result.data(), first.data(), bytes);
  std::memcpy(result.data() + bytes, second.data(), static_cast<std::size_t>(second.meta.bytes().number()));
  return result;
}

Tensor one_plus(const Tensor& tensor) {
  Tensor result = Tensor::empty(tensor.meta);
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i)
    result.as<float>()[i] = 1 + tensor.as<float>()[i];
  return result;
}

}  // namespace weft
