#include "engine/weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "nn/rope.h"
#include "tensor/convert.h"

namespace weft {
namespace {

std::string joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : "+") + key;
  return text;
}

Tensor converted(const Tensor& vector, DType dtype) {
  Tensor result = Tensor::empty(Meta::tensor(dtype, vector.meta.shape));
  convert_row(vector.meta.dtype, vector.data(), dtype, result.data(), element_count(vector.meta.shape).number());
  return result;
}

}  // namespace

Weights::Weights(const Context& context, Checkpoint checkpoint, const ModelFacts& facts)
    : context_(context), checkpoint_(std::move(checkpoint)), facts_(facts) {}

bool Weights::can_merge(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return checkpoint_.tensor(key).meta.dtype == checkpoint_.tensor(keys[0]).meta.dtype;
  });
}

Meta Weights::plain_meta(const std::vector<std::string>& keys) const {
  Meta meta = checkpoint_.tensor(keys[0]).meta;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const Meta& next = checkpoint_.tensor(keys[i]).meta;
    USER_CHECK(next.rank() == 2 && meta.rank() == 2 && next.shape[1] == meta.shape[1],
               "[{}] {} must have rows of the same width as {}: {}, but is {}", checkpoint_.path(), keys[i], keys[0],
               meta.text(), next.text());
    meta.shape[0] = meta.shape[0] + next.shape[0];
  }
  return meta;
}

// The providers are asked in the order in which the weight's calls will ask them, for one row and without a bias.
const Packing* Weights::packing_for(const Meta& plain, WeightRole role) const {
  if (role != WeightRole::linear || plain.rank() != 2) return nullptr;
  const bool quantised = is_block(plain.dtype) && facts_.fast;
  const std::string op = quantised ? "linear_int8" : "linear";
  const Dim depth = plain.shape[1];
  std::vector<std::optional<Meta>> operands{Meta::tensor(facts_.dtype, {1, depth}), plain, std::nullopt};
  if (quantised)
    operands = {Meta::tensor(DType::i8, {1, depth}), Meta::tensor(DType::f32, {1, depth.number() / 32}), plain};
  const Meta result = Meta::tensor(facts_.dtype, {1, plain.shape[0]});
  const Attributes attributes = quantised ? Attributes{{"dtype", facts_.dtype}} : Attributes{};
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

Meta Weights::meta(const std::vector<std::string>& keys, WeightRole role) {
  Meta meta = plain_meta(keys);
  if (role == WeightRole::vector) meta.dtype = facts_.dtype;
  if (const Packing* packing = packing_for(meta, role)) meta.packed = packing->name;
  return meta;
}

Tensor Weights::tensor(const std::vector<std::string>& keys, WeightRole role) {
  Tensor& loaded = loaded_[joined(keys)];
  if (loaded.defined()) return loaded;
  const Meta plain = plain_meta(keys);
  if (role == WeightRole::vector && plain.dtype != facts_.dtype) {
    CHECK(keys.size() == 1, "vectors are not merged");
    loaded = converted(checkpoint_.tensor(keys[0]), facts_.dtype);
  } else if (const Packing* packing = packing_for(plain, role)) {
    loaded = pack(*packing, keys);
  } else {
    // A small one is copied, too: the system maps far more of the file around it than it holds.
    constexpr std::int64_t kSmallBytes = 1 << 20;
    const bool stays_mapped = keys.size() == 1 && plain.bytes().number() > kSmallBytes;
    loaded = stays_mapped ? checkpoint_.tensor(keys[0]) : merge(plain, keys);
  }
  return loaded;
}

Tensor Weights::pack(const Packing& packing, const std::vector<std::string>& keys) {
  std::vector<Tensor> parts;
  for (const std::string& key : keys) parts.push_back(checkpoint_.tensor(key));
  Tensor packed = pack_weight(packing, parts, *context_.threads, [&] {
    for (const std::string& key : keys) checkpoint_.drop_pages(*checkpoint_.find(key));
  });
  packed_bytes_ += packed.storage->bytes();
  return packed;
}

Tensor Weights::merge(const Meta& plain, const std::vector<std::string>& keys) {
  Tensor merged = Tensor::empty(plain);
  packed_bytes_ += merged.storage->bytes();
  std::byte* at = merged.data();
  for (const std::string& key : keys) {
    const Tensor& part = checkpoint_.tensor(key);
    const std::int64_t bytes = part.meta.bytes().number();
    std::memcpy(at, part.data(), static_cast<std::size_t>(bytes));
    at += bytes;
    checkpoint_.drop_pages(*checkpoint_.find(key));
  }
  return merged;
}

const Tensor& Weights::rotary_table() {
  if (rotary_table_.defined()) return rotary_table_;
  const RopeConfig& rope = facts_.config.rope;
  const std::int64_t positions = facts_.config.context_length;
  std::span<const float> factors;
  if (!rope.frequency_factors.empty()) {
    const Tensor& tensor = checkpoint_.tensor(rope.frequency_factors);
    USER_CHECK(tensor.meta == Meta::tensor(DType::f32, {rope.rotary_dim / 2}), "[{}] must be f32[{}], but is {}",
               rope.frequency_factors, rope.rotary_dim / 2, tensor.meta.text());
    factors = {tensor.as<float>(), static_cast<std::size_t>(rope.rotary_dim / 2)};
  }
  const std::vector<float> frequencies = nn::inverse_frequencies(rope, positions, factors);
  const float magnitude = nn::rotary_magnitude(rope);
  rotary_table_ = Tensor::empty(Meta::tensor(DType::f32, {positions, rope.rotary_dim}));
  constexpr std::int64_t kRows = 256;  // positions a chunk
  context_.threads->run((positions + kRows - 1) / kRows, [&](std::int64_t chunk, int) {
    const std::int64_t begin = chunk * kRows, end = std::min(positions, begin + kRows);
    nn::fill_rotary_rows(frequencies, magnitude, begin, end, rotary_table_.as<float>() + begin * rope.rotary_dim);
  });
  return rotary_table_;
}

std::int64_t Weights::loaded_bytes() const {
  std::int64_t bytes = rotary_table_.defined() ? rotary_table_.storage->bytes() : 0;
  for (const auto& [key, tensor] : loaded_)
    bytes += tensor.meta.packed.empty() ? tensor.meta.bytes().number() : tensor.storage->bytes();
  return bytes;
}

}  // namespace weft
