// The part of Weights that stacks the weights of experts: from one tensor for each expert, or from stacks whose rows of
// one expert are joined, or which are transposed; and those of heads of latent attention.

#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/weights/weights.h"
#include "io/quantized_weight.h"
#include "nn/model_weight.h"

namespace weft {

// The dim along which several weights are joined: rows or elements, those of each expert if they are stacks.
std::size_t Weights::joined_dim(const Meta& meta, WeightRole role) {
  const bool is_stack = meta.rank() == (role == WeightRole::vector ? 2 : 3);
  return is_stack ? 1 : 0;
}

// The number of tensors that make up a stack; the model's check has compared it with the config.
std::int64_t Weights::stack_size(const std::string& key) const {
  std::int64_t size = 0;
  while (has(stored_name(name_of_expert(key, size)))) ++size;
  return size;
}

// Layers with experts ask many times, and each answer takes the names and the types of all experts.
Meta Weights::stack_meta(const std::string& key, WeightRole role) const {
  const auto known = stack_metas_.find({key, role});
  if (known != stack_metas_.end()) return known->second;
  return stack_metas_[{key, role}] = find_stack_meta(key, role);
}

// Experts of different types, some with codes and some with numbers, are numbers; so are codes of which only some have
// an order of their own. Numbers of different types are f32, which has all their values.
Meta Weights::find_stack_meta(const std::string& key, WeightRole role) const {
  Meta meta = stored_meta(name_of_expert(key, 0), role);
  const bool may_be_numbers = is_made_of_rows(key, role);
  const bool is_in_order = order_key({name_of_expert(key, 0)}).empty();
  const std::int64_t count = stack_size(key);
  for (std::int64_t expert = 1; expert < count; ++expert) {
    const std::string name = name_of_expert(key, expert);
    Meta other = stored_meta(name, role);
    const bool differs = other.dtype != meta.dtype || order_key({name}).empty() != is_in_order;
    const bool are_floating = is_floating(meta.dtype) && is_floating(other.dtype);
    if (differs && (may_be_numbers || are_floating))
      meta.dtype = other.dtype = may_be_numbers ? dtype_of_numbers() : DType::f32;
    USER_CHECK(other == meta, "[{}] {} must be {} like the experts before it, but is {}", checkpoint_.path(), name,
               meta.text(), other.text());
  }
  meta.shape.insert(meta.shape.begin(), count);
  return meta;
}

Meta Weights::transposed_meta(Meta meta) {
  std::swap(meta.shape[meta.rank() - 2], meta.shape.back());
  return meta;
}

// Transposes each matrix of a stack.
Tensor Weights::transposed(const Tensor& stored) const {
  CHECK(!is_block(stored.meta.dtype), "{} cannot be transposed", stored.meta.text());
  Tensor result = Tensor::empty(transposed_meta(stored.meta));
  const std::int64_t rows = result.meta.shape[result.meta.rank() - 2].number();
  const std::int64_t columns = result.meta.shape.back().number();
  const std::int64_t bytes = bytes_of(stored.meta.dtype, 1);
  context_.threads->run(element_count(result.meta.shape).number() / columns, [&](std::int64_t row, int) {
    const std::byte* from = stored.data() + (row / rows * rows * columns + row % rows) * bytes;
    std::byte* to = result.data() + row * columns * bytes;
    for (std::int64_t column = 0; column < columns; ++column)
      std::memcpy(to + column * bytes, from + column * rows * bytes, static_cast<std::size_t>(bytes));
  });
  return result;
}

bool Weights::is_latent(WeightRole role) {
  return role == WeightRole::latent_keys || role == WeightRole::latent_values;
}

Meta Weights::latent_meta(DType stored, WeightRole role) const {
  const DType dtype = is_block(stored) ? DType::f32 : stored;
  const LatentConfig& latents = facts_.config.latents.value();
  const std::int64_t heads = facts_.config.head_count;
  return role == WeightRole::latent_keys ? Meta::tensor(dtype, {heads, latents.rank, latents.plain_dim})
                                         : Meta::tensor(dtype, {heads, latents.value_dim, latents.rank});
}

// The rows of a weight whose input is latents, in the order of the latents.
Tensor Weights::rows_of_latents(const std::string& key) const {
  return order_key({key}).empty() ? stored(key, WeightRole::linear)
                                  : dequantized_weight(checkpoint_, config_of_codes(key), key);
}

// The rows of keys, transposed, or those of values, of a weight that has both for each head. Blocks cannot be
// transposed, so they become numbers.
Tensor Weights::latent_part(const Tensor& stored, WeightRole role) const {
  const LatentConfig& latents = facts_.config.latents.value();
  const bool is_key = role == WeightRole::latent_keys;
  const std::int64_t rows = is_key ? latents.plain_dim : latents.value_dim, skipped = is_key ? 0 : latents.plain_dim;
  const DType dtype = latent_meta(stored.meta.dtype, role).dtype;
  Tensor numbers = stored;
  if (dtype != stored.meta.dtype) {
    numbers = Tensor::empty(Meta::tensor(dtype, stored.meta.shape));
    convert(stored, dtype, numbers.data());
  }
  const std::int64_t row_bytes = bytes_of(dtype, latents.rank);
  Tensor part = Tensor::empty(Meta::tensor(dtype, {facts_.config.head_count, rows, latents.rank}));
  for (std::int64_t head = 0; head < facts_.config.head_count; ++head) {
    const std::int64_t first = head * (latents.plain_dim + latents.value_dim) + skipped;
    std::memcpy(part.data() + head * rows * row_bytes, numbers.data() + first * row_bytes,
                static_cast<std::size_t>(rows * row_bytes));
  }
  return is_key ? transposed(part) : part;
}

// The rows of one expert, from its own tensor or from a stack.
Tensor Weights::stored_of_expert(const std::string& key, std::int64_t expert, WeightRole role) const {
  if (is_made_of_rows(key, role)) return all_rows(rows_of(name_of_expert(key, expert), stack_meta(key, role).dtype));
  if (is_name_of_experts(key)) return stored(name_of_expert(key, expert), role);
  Tensor stack = stored(key, role);
  const Shape shape(stack.meta.shape.begin() + 1, stack.meta.shape.end());
  const std::int64_t bytes = bytes_of(stack.meta.dtype, element_count(shape).number());
  return {Meta::tensor(stack.meta.dtype, shape), stack.storage, stack.byte_offset + expert * bytes};
}

// Calls visit with the tensors whose elements, one after another, are those of the joined weight. Those that are made
// of codes are in memory one at a time.
void Weights::for_each_part(const std::vector<std::string>& keys, WeightRole role, const VisitPart& visit) const {
  const Meta first = stored_meta(keys[0], role);
  if (joined_dim(first, role) == 0 || (keys.size() == 1 && !is_name_of_experts(keys[0]))) {
    for (const std::string& key : keys) visit(stored(key, role));
    return;
  }
  for (std::int64_t expert = 0; expert < first.shape[0].number(); ++expert)
    for (const std::string& key : keys) visit(stored_of_expert(key, expert, role));
}

void Weights::drop_expert_pages(const std::string& key) const {
  const std::int64_t count = stack_size(key);
  for (std::int64_t expert = 0; expert < count; ++expert) drop_pages(name_of_expert(key, expert));
}

}  // namespace weft
