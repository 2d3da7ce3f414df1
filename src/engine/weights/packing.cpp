// The part of Weights that chooses the packing of a matrix, or of a stack of them, and packs it. Those of adapters are
// made before.

#include <algorithm>

#include "base/error.h"
#include "engine/weights/weights.h"
#include "kernels/select.h"
#include "tensor/block_format.h"

namespace weft {

// The providers are asked in the order in which the weight's calls will ask them, for one row and without a bias.
const Packing* Weights::packing_for(const Meta& plain, WeightRole role) const {
  const bool is_multiplied = is_matrix(role) || (is_adapter(role) && role != WeightRole::lora_mask);
  if (!is_multiplied || plain.rank() < 2) return nullptr;
  const bool is_stack = plain.rank() == 3;
  const BlockProduct product = block_product(plain.dtype, facts_.activations);
  const bool is_int8 = product == BlockProduct::int8, is_bf16 = product == BlockProduct::bf16;
  const std::string op = std::string(is_stack ? "grouped_" : "") + (is_int8   ? "linear_int8"
                                                                    : is_bf16 ? "linear_bf16"
                                                                              : "linear");
  const Dim depth = plain.shape.back();
  std::vector<std::optional<Meta>> operands{Meta::tensor(is_bf16 ? DType::bf16 : facts_.dtype, {1, depth}), plain};
  if (is_int8)
    operands = {Meta::tensor(DType::i8, {1, depth}), Meta::tensor(DType::f32, {1, depth.number() / 32}), plain};
  if (is_stack) operands.emplace_back(Meta::tensor(DType::i32, {1}));
  if (is_stack || !is_int8) operands.emplace_back();  // no bias
  const Meta result = Meta::tensor(facts_.dtype, {1, plain.shape[plain.rank() - 2]});
  const Attributes attributes = product == BlockProduct::numbers ? Attributes() : Attributes{{"dtype", facts_.dtype}};
  for (const Candidate& candidate :
       list_candidates(context_.kernels, context_.priorities, op, context_.options.batch_invariant)) {
    if (candidate.provider == "native" || candidate.provider == "reference") return nullptr;
    if (candidate.kernel == nullptr) continue;
    const KernelRequest request{operands, {&result, 1}, attributes, candidate.kernel->rows};
    if (candidate.tuned != nullptr && std::none_of(candidate.tuned->begin(), candidate.tuned->end(),
                                                   [&](const TunedCall& call) { return call.is_about(request); }))
      continue;
    if (const Packing* packing = own_packing(context_.kernels, candidate.provider, plain, context_.device))
      return packing;
    if (candidate.kernel->supports(request)) return nullptr;
  }
  return nullptr;
}

bool Weights::is_adapter(WeightRole role) {
  return role == WeightRole::lora_a || role == WeightRole::lora_b || role == WeightRole::lora_mask;
}

// Spare choices are not touched, so that they take no memory.
Tensor Weights::adapter(const std::vector<std::string>& keys, WeightRole role) {
  const Meta plain = plain_meta(keys, role);
  const Packing* packing = packing_for(plain, role);
  if (!adapters_->is_stacked()) {
    Tensor whole = adapters_->whole(keys, role, facts_.dtype);
    if (packing == nullptr) return whole;
    return pack_weight(*packing, plain, {&whole, 1}, *context_.threads, nullptr, room(packing->bytes(plain)));
  }
  const std::int64_t bytes = packing == nullptr ? plain.bytes().number() : packing->bytes(plain);
  AdapterStack stack{.tensor = {.meta = meta(keys, role)}, .packing = packing, .choices = adapters_->choices()};
  stack.tensor.storage =
      adapters_->spare() > 0 ? Storage::allocate(bytes, Storage::PageSize::small) : room(whole_cache_lines(bytes));
  std::int64_t choice = 0;
  for (const LoraParts& parts : adapters_->parts()) {
    if (adapts_any(parts, keys))
      stack.fill(choice, adapters_->of_choice(keys, role, facts_.dtype, parts), *context_.threads);
    ++choice;
  }
  return stack.tensor;
}

AdapterStack Weights::adapter_stack(const std::vector<std::string>& keys, WeightRole role) {
  CHECK(adapters_ != nullptr && adapters_->is_stacked(), "the adapters are no stacks");
  return {.tensor = tensor(keys, role),
          .packing = packing_for(plain_meta(keys, role), role),
          .choices = adapters_->choices()};
}

Tensor Weights::pack(const Packing& packing, const std::vector<std::string>& keys, WeightRole role) {
  const Meta plain = plain_meta(keys, role);
  if (is_made_of_rows(keys[0], role)) return pack_of_rows(packing, keys, plain);
  std::vector<Tensor> parts;
  for_each_part(keys, role, [&](const Tensor& part) { parts.push_back(part); });
  const auto is_plain = [&](const Tensor& part) { return part.meta.dtype == plain.dtype; };
  if (!std::all_of(parts.begin(), parts.end(), is_plain)) parts = {merge(plain, keys, role)};
  const auto drop_read = [&] {
    for (const std::string& key : keys) drop_pages(key);
  };
  // Experts have many small tensors, whose pages are dropped once.
  const bool is_stack = plain.rank() == 3;
  const Tensor packed = pack_weight(packing, plain, parts, *context_.threads,
                                    is_stack ? std::function<void()>() : drop_read, room(packing.bytes(plain)));
  if (is_stack) drop_read();
  return packed;
}

}  // namespace weft
