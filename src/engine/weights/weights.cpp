#include "engine/weights/weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/compile/builders.h"
#include "engine/weights/derived.h"
#include "io/mxfp4_weight.h"
#include "io/quantized_weight.h"
#include "io/scaled_blocks.h"
#include "nn/model_weight.h"
#include "tensor/convert.h"

namespace weft {
namespace {

std::string joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : "+") + key;
  return text;
}

bool is_table(WeightRole role) {
  using enum WeightRole;
  return role == rotary || role == sliding_rotary || role == query_scale || role == alibi;
}

std::string table_name(WeightRole role) {
  return role == WeightRole::query_scale ? "of query factors"
         : role == WeightRole::alibi     ? "of score biases"
         : role == WeightRole::rotary    ? "of positions"
                                         : "of positions in a window";
}

// Keys and values of latent attention may be parts of one tensor, and lengths and adapters are beside the weights.
std::string name_of_loaded(const std::vector<std::string>& keys, WeightRole role) {
  if (is_table(role)) return table_name(role);
  return joined(keys) + (role == WeightRole::latent_values            ? " (values)"
                         : role == WeightRole::inverse_lengths        ? " (lengths)"
                         : role == WeightRole::inverse_column_lengths ? " (lengths of columns)"
                         : role == WeightRole::lora_a                 ? " (lora_a)"
                         : role == WeightRole::lora_b                 ? " (lora_b)"
                         : role == WeightRole::lora_mask              ? " (lora_mask)"
                                                                      : "");
}

// Whether weights of this role are in f32 for every dtype of the residual stream.
bool is_exact_vector(WeightRole role) {
  return role == WeightRole::exact || role == WeightRole::one_plus || role == WeightRole::minus_exp;
}

}  // namespace

Weights::Weights(const Context& context, Checkpoint checkpoint, const ModelFacts& facts,
                 const std::vector<std::string>& own, std::shared_ptr<const LoraStacks> adapters)
    : context_(context),
      checkpoint_(std::move(checkpoint)),
      facts_(facts),
      own_(own.begin(), own.end()),
      adapters_(std::move(adapters)) {}

// Whether the blocks of a matrix have factors in another tensor, which no weight of the model reads.
bool Weights::has_factors(const std::string& key, WeightRole role) const {
  if (!is_matrix(role) || is_name_of_experts(key)) return false;
  const std::string factors = factors_of_blocks(checkpoint_, key);
  return !factors.empty() && !own_.contains(factors);
}

const QuantizationConfig* Weights::config_of(const std::string& key) const {
  if (!facts_.config.quantization) return nullptr;
  const auto [config, is_new] = configs_.try_emplace(key);
  if (is_new) config->second = facts_.config.quantization->of(is_name_of_experts(key) ? name_of_expert(key, 0) : key);
  return config->second;
}

const QuantizationConfig& Weights::config_of_codes(const std::string& key) const {
  const QuantizationConfig* config = config_of(key);
  CHECK(config != nullptr, "{} has no codes", key);
  return *config;
}

bool Weights::is_quantized(const std::string& key) const {
  const QuantizationConfig* config = config_of(key);
  if (config == nullptr) return false;
  // Stacks of plain numbers have no scales.
  return is_name_of_experts(key) || has_codes(checkpoint_, *config, key);
}

bool Weights::is_mxfp4(const std::string& key) const {
  return is_quantized(key) && config_of_codes(key).scheme == QuantizationScheme::mxfp4;
}

const QuantizationConfig* Weights::quantization(const std::vector<std::string>& keys) const {
  if (is_name_of_experts(keys[0]) || is_mxfp4(keys[0]) || is_grouped(keys[0])) return nullptr;
  if (facts_.is_exact() || !is_quantized(keys[0])) return nullptr;
  const QuantizationConfig* config = config_of(keys[0]);
  const bool computes_over_codes =
      !config->weights_only && has_whole_blocks(keys) && (!is_on_gpu() || multiplies_codes(keys));
  return computes_over_codes ? config : nullptr;
}

bool Weights::is_on_gpu() const { return context_.device.id.type != DeviceType::cpu; }

CodeProduct Weights::product_over_codes(const std::vector<std::string>& keys) const {
  const QuantizationConfig& config = config_of_codes(keys[0]);
  const Meta codes = plain_meta({quantized_names(config, keys[0]).codes}, WeightRole::codes);
  return code_product(context_.ops, facts_, keys, codes.shape[1],
                      [&](const auto& of, WeightRole role) { return meta(of, role); });
}

bool Weights::multiplies_codes(const std::vector<std::string>& keys) const {
  return is_multiplied(product_over_codes(keys), context_);
}

std::vector<std::string> Weights::costs_of_options(const std::vector<TracedParam>& params) const {
  struct Cost {
    std::string first;
    std::size_t weights = 0;
    std::int64_t bytes = 0, bytes_of_codes = 0;
  };
  std::map<std::string, Cost> costs;  // by option
  for (const auto& [name, keys, role] : params) {
    if (keys.empty() || is_name_of_experts(keys[0]) || is_mxfp4(keys[0]) || is_grouped(keys[0])) continue;
    const bool is_made_numbers =
        role == WeightRole::linear && !facts_.is_exact() && is_on_gpu() && is_quantized(keys[0]);
    if (!is_made_numbers || quantization(keys) != nullptr) continue;
    std::string option = has_whole_blocks(keys) ? options_against(product_over_codes(keys), context_) : "";
    // The GPU may have no product for merged weights, but one for each weight by itself.
    if (option.empty()) option = options_against(product_over_codes({keys[0]}), context_);
    if (option.empty()) continue;
    Cost& cost = costs[option];
    if (cost.weights == 0) cost.first = keys[0];
    cost.weights += keys.size();
    cost.bytes += plain_meta(keys, role).bytes().number();
    for (const std::string& key : keys)
      cost.bytes_of_codes +=
          plain_meta({quantized_names(config_of_codes(key), key).codes}, WeightRole::codes).bytes().number();
  }
  std::vector<std::string> sentences;
  for (const auto& [option, cost] : costs)
    sentences.push_back(
        fmt::format("{} leaves {} without a kernel that multiplies the codes of {} weights, {} the "
                    "first: they are loaded as {}, {} bytes in place of {}",
                    option, device_text(context_.device.id), cost.weights, cost.first, dtype_text(facts_.dtype),
                    cost.bytes, cost.bytes_of_codes));
  return sentences;
}

// The type that is read from the checkpoint: blocks for a quantized weight that is asked for by its own name, or
// numbers if its scales are for no whole blocks or the device multiplies no blocks. Pairs of codes stay pairs.
Meta Weights::stored_meta(const std::string& key, WeightRole role) const {
  if (is_name_of_experts(key)) return stack_meta(key, role);
  if (is_mxfp4(key)) return mxfp4_stack_meta(checkpoint_, config_of_codes(key), key);
  if (role == WeightRole::transposed) return transposed_meta(stored_meta(key, WeightRole::linear));
  if (is_latent(role)) return latent_meta(stored_meta(key, WeightRole::linear).dtype, role);
  if (role == WeightRole::positions) {
    Meta table = stored_meta(key, WeightRole::codes);
    table.shape[0] = table.shape[0] - facts_.config.first_position_row;
    return table;
  }
  if ((role == WeightRole::linear || role == WeightRole::codes) && is_grouped(key)) return grouped_type(key);
  if (has_factors(key, role)) return scaled_blocks_meta(checkpoint_, key);
  if (role == WeightRole::linear && is_quantized(key)) {
    const QuantizationConfig& config = config_of_codes(key);
    const Meta codes = quantized_codes_meta(checkpoint_, config, key);
    const DType blocks = dtype_of_codes(config, codes);
    return Meta::tensor(is_block(blocks) && !is_on_gpu() ? blocks : dtype_of_numbers(), codes.shape);
  }
  if (role == WeightRole::codes && is_quantized(key))
    return quantized_codes_meta(checkpoint_, config_of_codes(key), key);
  return meta_of_stored(checkpoint_.tensor(key).meta);
}

Tensor Weights::stored(const std::string& key, WeightRole role) const {
  if (is_mxfp4(key)) return mxfp4_stack(checkpoint_, config_of_codes(key), key);
  if (role == WeightRole::transposed) return transposed(stored(key, WeightRole::linear));
  if (is_latent(role)) return latent_part(rows_of_latents(key), role);
  if (role == WeightRole::positions) {
    const Tensor table = stored(key, WeightRole::codes);
    const std::int64_t skipped = facts_.config.first_position_row * table.meta.shape[1].number();
    return {stored_meta(key, role), table.storage, table.byte_offset + bytes_of(table.meta.dtype, skipped)};
  }
  if (has_factors(key, role)) return scaled_blocks(checkpoint_, key);
  if (is_made_of_rows(key, role)) return all_rows(rows_of(key, stored_meta(key, role).dtype));
  if (role == WeightRole::codes && is_quantized(key)) return quantized_codes(checkpoint_, config_of_codes(key), key);
  Tensor tensor = checkpoint_.tensor(key);
  tensor.meta = stored_meta(key, role);
  return tensor;
}

// The tensor of a weight, or of its codes.
std::string Weights::stored_name(const std::string& key) const {
  return is_quantized(key) ? quantized_names(config_of_codes(key), key).codes : key;
}

void Weights::drop_pages(const std::string& key) const {
  if (is_name_of_experts(key)) return drop_expert_pages(key);
  if (const TensorEntry* entry = checkpoint_.find(stored_name(key))) checkpoint_.drop_pages(*entry);
}

bool Weights::is_matrix(WeightRole role) {
  return role == WeightRole::linear || role == WeightRole::transposed || is_latent(role);
}

bool Weights::is_expanded(WeightRole role) const { return is_matrix(role) && is_on_gpu(); }

bool Weights::is_narrowed(const std::string& key, const Meta& stored, WeightRole role) const {
  if (!is_matrix(role) || stored.dtype != DType::f32 || context_.options.dtype == "auto" || facts_.is_exact())
    return false;
  // Keys of latents that are stored in blocks become f32.
  const TensorEntry* entry = checkpoint_.find(key);
  return !is_latent(role) || (entry != nullptr && entry->tensor.meta.dtype == DType::f32);
}

Meta Weights::plain_meta(const std::vector<std::string>& keys, WeightRole role) const {
  if (is_adapter(role)) return adapters_->meta(keys, role, facts_.dtype);
  Meta meta = stored_meta(keys[0], role);
  const std::size_t joined = joined_dim(meta, role);
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const Meta next = stored_meta(keys[i], role);
    Shape wanted = meta.shape;
    if (joined < next.rank()) wanted[joined] = next.shape[joined];
    USER_CHECK(next.shape == wanted, "[{}] {} must have rows of the same width as {}: {}, but is {}",
               checkpoint_.path(), keys[i], keys[0], meta.text(), next.text());
    meta.shape[joined] = meta.shape[joined] + next.shape[joined];
  }
  if (is_expanded(role) || is_narrowed(keys[0], meta, role)) meta.dtype = facts_.dtype;
  return meta;
}

// The vectors one after another, in the dtype of the residual stream: the biases of merged weights.
Tensor Weights::joined_vectors(const std::vector<std::string>& keys) const {
  Tensor result = Tensor::empty(meta(keys, WeightRole::vector));
  std::byte* at = result.data();
  for_each_part(keys, WeightRole::vector, [&](const Tensor& stored) {
    const Tensor part = converted(stored, result.meta.dtype);
    const auto bytes = static_cast<std::size_t>(part.meta.bytes().number());
    std::memcpy(at, part.data(), bytes);
    at += bytes;
  });
  return result;
}

Meta Weights::meta(const std::vector<std::string>& keys, WeightRole role) const {
  using enum WeightRole;
  if (role == number || role == reciprocal) return Meta::tensor(DType::f32, {1});
  if (role == row_scale) return row_scale_meta(keys);
  if (role == inverse_lengths) return Meta::tensor(DType::f32, {plain_meta(keys, linear).shape[0]});
  if (role == inverse_column_lengths) return Meta::tensor(DType::f32, {plain_meta(keys, linear).shape[1]});
  if (role == scale) return block_scale_meta(keys);
  if (role == WeightRole::order) return order_meta(keys[0]);
  if (is_table(role)) return table_meta(role);
  if (role == distance_bias) return score_bias_meta();
  Meta meta = plain_meta(keys, role);
  if (role == vector) meta.dtype = facts_.dtype;
  if (is_exact_vector(role)) meta.dtype = DType::f32;
  if (role == taps || role == decays) return Meta::tensor(DType::f32, {meta.shape.back(), meta.shape[0]});
  if (const Packing* packing = packing_for(meta, role)) meta.packed = packing->name;
  return meta;
}

std::int64_t Weights::bytes(const std::vector<std::string>& keys, WeightRole role) const {
  const Meta loaded = meta(keys, role);
  if (loaded.packed.empty()) return loaded.bytes().number();
  const Meta plain = plain_meta(keys, role);
  return packing_for(plain, role)->bytes(plain);
}

Tensor Weights::tensor(const std::vector<std::string>& keys, WeightRole role) {
  const std::string name = name_of_loaded(keys, role);
  Tensor& loaded = loaded_[name];
  if (loaded.defined()) return loaded;
  context_.first_time_work->begin(FirstTime::load, (is_table(role) ? "the table " : "weight ") + name);
  return loaded = load(keys, role);
}

void Weights::forget(const std::vector<std::string>& keys, WeightRole role) {
  loaded_.erase(name_of_loaded(keys, role));
  for (const std::string& key : keys) drop_pages(key);
}

// Zeros stay zeros when they are read, merged, converted or packed, so all dummy weights share one buffer.
Tensor Weights::dummy(const std::vector<std::string>& keys, WeightRole role) {
  Tensor tensor{.meta = meta(keys, role)};
  const std::int64_t bytes = whole_cache_lines(this->bytes(keys, role));  // rows of block scales may be padded
  if (zeros_ == nullptr || zeros_->bytes() < bytes) zeros_ = Storage::zeros(bytes);
  tensor.storage = Storage::view_of(zeros_->data(), bytes, zeros_);
  return tensor;
}

Tensor Weights::load(const std::vector<std::string>& keys, WeightRole role) {
  using enum WeightRole;
  if (is_table(role)) return table(role);
  if (role == number || role == reciprocal) {
    Tensor one = Tensor::empty(Meta::tensor(DType::f32, {1}));
    const float value = number_in(checkpoint_, keys[0]);
    *one.as<float>() = role == number ? value : 1 / value;
    return one;
  }
  if (is_adapter(role)) return adapter(keys, role);
  if (checkpoint_.is_dummy()) return dummy(keys, role);
  if (role == distance_bias) return distance_biases(keys[0]);
  if (role == row_scale) return row_scales(keys);
  if (role == inverse_lengths) return inverse_lengths_of(rows_of(keys[0], DType::f32));
  if (role == inverse_column_lengths) return inverse_column_lengths_of(rows_of(keys[0], DType::f32));
  if (role == scale) return block_scales(keys);
  if (role == WeightRole::order) return this->order(keys[0]);
  CHECK(keys.size() == 1 || !is_exact_vector(role), "vectors of f32 are not merged");
  if (is_exact_vector(role)) {
    Tensor numbers = converted(checkpoint_.tensor(keys[0]), DType::f32);
    if (role == one_plus) add_one(numbers);
    if (role == minus_exp) take_minus_exp(numbers);
    return numbers;
  }
  if (role == taps || role == decays) {
    Tensor turned = taps_of(checkpoint_.tensor(keys[0]));
    if (role == decays) take_minus_exp(turned);
    return turned;
  }
  if (role == vector && (keys.size() > 1 || is_name_of_experts(keys[0]))) return joined_vectors(keys);
  Meta plain = plain_meta(keys, role);
  if (role == vector && plain.dtype != facts_.dtype) {
    return converted(checkpoint_.tensor(keys[0]), facts_.dtype);
  }
  if (const Packing* packing = packing_for(plain, role)) return pack(*packing, keys, role);
  // A small weight is copied, too: the system maps far more of the file around it than the weight's bytes.
  constexpr std::int64_t kSmallBytes = 1 << 20;
  const bool is_as_stored =
      keys.size() == 1 && !is_name_of_experts(keys[0]) && (role == WeightRole::linear || !is_matrix(role));
  const bool stays_mapped =
      is_as_stored && plain.bytes().number() > kSmallBytes && stored_meta(keys[0], role).dtype == plain.dtype;
  return stays_mapped ? stored(keys[0], role) : merge(plain, keys, role);
}

// Weights are stored one after another in mappings of huge pages, of which those that no weight reaches take no memory.
// Getting a page of 4 KB costs as much as packing it, and reading weights from such pages needs twenty times as many
// address look-ups; with huge pages of its own each weight would waste half of one. For a GPU each weight has its own
// memory, because the weights are forgotten one by one.
std::shared_ptr<Storage> Weights::room(std::int64_t bytes) {
  constexpr std::int64_t kBlockBytes = 256 << 20, kLine = 64;
  if (bytes > kBlockBytes || is_on_gpu()) return Storage::allocate(bytes);
  if (block_ == nullptr || bytes > block_->bytes() - block_used_) {
    block_ = Storage::allocate(kBlockBytes);
    block_used_ = 0;
  }
  std::byte* data = block_->data() + block_used_;
  block_used_ += (bytes + kLine - 1) / kLine * kLine;
  return Storage::view_of(data, bytes, block_);
}

Tensor Weights::merge(const Meta& plain, const std::vector<std::string>& keys, WeightRole role) {
  Tensor merged{.meta = plain, .storage = room(plain.bytes().number())};
  std::byte* at = merged.data();
  for_each_part(keys, role, [&](const Tensor& part) {
    const std::int64_t bytes = Meta::tensor(plain.dtype, part.meta.shape).bytes().number();
    if (part.meta.dtype == plain.dtype) {
      std::memcpy(at, part.data(), static_cast<std::size_t>(bytes));
    } else {
      convert(part, plain.dtype, at);
    }
    at += bytes;
  });
  for (const std::string& key : keys) drop_pages(key);
  return merged;
}

// Converts contiguous elements to another dtype, on all threads.
void Weights::convert(const Tensor& part, DType dtype, std::byte* to) const {
  constexpr std::int64_t kChunk = std::int64_t{1} << 18;  // elements; whole blocks
  const DType from = part.meta.dtype;
  const std::int64_t count = element_count(part.meta.shape).number();
  context_.threads->run((count + kChunk - 1) / kChunk, [&](std::int64_t chunk, int) {
    const std::int64_t first = chunk * kChunk;
    convert_row(from, part.data() + bytes_of(from, first), dtype, to + bytes_of(dtype, first),
                std::min(kChunk, count - first));
  });
}

std::int64_t Weights::loaded_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [key, tensor] : loaded_)
    bytes += tensor.meta.packed.empty() ? tensor.meta.bytes().number() : tensor.storage->bytes();
  return bytes;
}

}  // namespace weft
