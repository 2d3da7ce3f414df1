#include "engine/weights/lora_stacks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/convert.h"

namespace weft {
namespace {

ScaledLora scaled_lora(const std::string& text) {
  const std::size_t at = text.rfind(':');
  USER_CHECK(at != std::string::npos && at > 0, "[--lora-scaled] wanted PATH:SCALE, but is {}", quote(text, 1000));
  return {text.substr(0, at), decimal_number(text.substr(at + 1), "--lora-scaled")};
}

std::int64_t rank_of_parts(const LoraParts& parts, const std::string& key) {
  std::int64_t rank = 0;
  if (const auto found = parts.find(key); found != parts.end())
    for (const LoraPart& part : found->second) rank += part.rank();
  return rank;
}

// The rows of A of each adapter that is summed.
void copy_a(const std::vector<LoraPart>& parts, Tensor& into, std::int64_t first) {
  const DType dtype = into.meta.dtype;
  const std::int64_t columns = into.meta.shape[1].number();
  for (const LoraPart& part : parts) {
    convert_row(part.a.meta.dtype, part.a.data(), dtype, into.data() + bytes_of(dtype, first * columns),
                part.rank() * columns);
    first += part.rank();
  }
}

// The columns of B are in the order of the rows of A, and have the scale.
void copy_b(const std::vector<LoraPart>& parts, Tensor& into, std::int64_t first_row, std::int64_t first) {
  const DType dtype = into.meta.dtype;
  const std::int64_t width = into.meta.shape[1].number();
  for (const LoraPart& part : parts) {
    const DType stored = part.b.meta.dtype;
    const std::int64_t rank = part.rank();
    std::vector<float> numbers(static_cast<std::size_t>(rank));
    auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
    const auto scale = static_cast<float>(part.scale);
    for (std::size_t row = 0; row < part.rows.size(); ++row) {
      convert_row(stored, part.b.data() + bytes_of(stored, part.rows[row] * rank), DType::f32, bytes, rank);
      for (float& number : numbers) number *= scale;
      const std::int64_t to = (first_row + static_cast<std::int64_t>(row)) * width + first;
      convert_row(DType::f32, bytes, dtype, into.data() + bytes_of(dtype, to), rank);
    }
    first += rank;
  }
}

}  // namespace

std::vector<NamedLora> named_loras(const Options& options) {
  std::vector<NamedLora> named;
  for (const std::string& text : options.lora_modules) {
    const std::size_t at = text.find('=');
    CHECK(at != std::string::npos, "the options table lets through the adapter {}", text);
    const std::string name = text.substr(0, at);
    for (const NamedLora& other : named)
      USER_CHECK(other.name != name, "[--lora-modules] two adapters have the name {}", quote(name));
    named.push_back({name, text.substr(at + 1)});
  }
  return named;
}

std::vector<ScaledLora> scaled_loras(const Options& options) {
  std::vector<ScaledLora> scaled;
  for (const std::string& path : options.lora) scaled.push_back({path});
  for (const std::string& text : options.lora_scaled) scaled.push_back(scaled_lora(text));
  if (options.lora_init_without_apply)
    for (ScaledLora& one : scaled) one.scale = 0;
  return scaled;
}

LoraStacks::LoraStacks(const Options& options, const ModelDefinition& model, const ModelConfig& config,
                       DeviceType device)
    : reader_(model, config) {
  const bool loads_later = options.allow_runtime_lora_updating;
  if (options.lora.empty() && options.lora_scaled.empty() && options.lora_modules.empty() && !loads_later) return;
  USER_CHECK(!loads_later || device == DeviceType::cpu,
             "[--allow-runtime-lora-updating] is for the CPU, but the device is a GPU, for which adapters are joined "
             "when the model is loaded: name them by --lora-modules");
  model.visit_tensors(config, config.format, [&](const ModelDefinition::StoredWeight& stored) {
    const std::vector<std::int64_t> shape = stored.weight.shape(config, stored.layer);
    if (shape.size() != 2) return;
    matrices_[stored.key] = {shape[0], shape[1]};
    if (loads_later) ranks_[stored.key] = options.max_lora_rank;
  });
  read(options);
  choices_ = static_cast<std::int64_t>(parts_.size());
  // Choices that are not used take addresses, and no memory.
  constexpr std::int64_t kLeastSpare = 16;
  if (loads_later) choices_ += std::max({kLeastSpare, options.max_loras, options.max_cpu_loras});
  if (!scaled_.empty()) choices_ += options.lora_scale_slots;
  is_joined_ = choices_ > 1 && device != DeviceType::cpu;
  if (loads_later)
    notes_.push_back(
        fmt::format("[lora] while the server runs there is room for {} adapters of rank {} in each linear layer of "
                    "tokens; those of "
                    "a higher rank are refused, for nothing is compiled again",
                    choices_ - 1, options.max_lora_rank));
  USER_CHECK(!is_joined_ || spare() == 0, "[--lora-scale-slots] is for the CPU, but the device is a GPU");
  set_ranks();
}

void LoraStacks::read(const Options& options) {
  const auto read = [&](const std::string& path, const std::string& title, LoraParts& parts) {
    adapters_.push_back(reader_.read(path, 1, parts));
    notes_.push_back(lora_note(adapters_.back(), title));
  };
  std::vector<double> scales;
  for (const auto& [path, scale] : scaled_loras(options)) {
    read(path, scale == 1 ? "all requests" : fmt::format("all requests, times {}", scale), scaled_.emplace_back());
    scales.push_back(scale);
  }
  parts_.push_back(scaled_parts(scales));  // of choice 0
  for (const auto& [name, path] : named_loras(options)) read(path, quote(name), parts_.emplace_back());
}

LoraParts LoraStacks::scaled_parts(std::span<const double> scales) const {
  LoraParts sum;
  for (std::size_t i = 0; i < scales.size(); ++i)
    for (const auto& [key, parts] : scaled_[i])
      for (LoraPart part : parts) {
        if (scales[i] == 0) continue;
        part.scale *= scales[i];
        sum[key].push_back(std::move(part));
      }
  return sum;
}

void LoraStacks::set_ranks() {
  const auto make_room = [&](const LoraParts& parts) {
    for (const auto& [key, of_key] : parts) {
      std::int64_t& rank = ranks_[key];
      rank = std::max(rank, rank_of_parts(parts, key));
    }
  };
  make_room(scaled_parts(std::vector<double>(scaled_.size(), 1)));
  for (const LoraParts& parts : parts_) make_room(parts);
}

bool LoraStacks::adapts(const std::vector<std::string>& keys) const {
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return ranks_.contains(key); });
}

void LoraStacks::check_all_read(const LoraParts& parts, const std::set<std::string>& read) {
  for (const auto& [key, of_key] : parts)
    USER_CHECK(read.contains(key),
               "{} adapts {}, by which no plain linear layer of tokens multiplies: adapters of experts, routers and "
               "convolutions are not implemented",
               of_key[0].source, key);
}

void LoraStacks::check_all_read(const std::set<std::string>& read) const {
  for (const std::vector<LoraParts>* all : {&scaled_, &parts_})
    for (const LoraParts& parts : *all) check_all_read(parts, read);
}

void LoraStacks::check_ranks(const LoraParts& parts) const {
  for (const auto& [key, of_key] : parts) {
    const std::int64_t rank = rank_of_parts(parts, key), most = rank_in(key);
    USER_CHECK(rank <= most, "LoRA rank {} is greater than max_lora_rank {}. {} adapts {}; --max-lora-rank sets it",
               rank, most, of_key[0].source, key);
  }
}

std::int64_t LoraStacks::rank_in(const std::string& key) const {
  const auto found = ranks_.find(key);
  return found == ranks_.end() ? 0 : found->second;
}

std::int64_t LoraStacks::rank_of(const std::vector<std::string>& keys) const {
  std::int64_t rank = 0;
  for (const std::string& key : keys) rank += rank_in(key);
  constexpr std::int64_t kWhole = 8;  // matrix products of GPUs read 16 bytes at a time
  return (rank + kWhole - 1) / kWhole * kWhole;
}

Meta LoraStacks::meta(const std::vector<std::string>& keys, WeightRole role, DType dtype) const {
  const std::int64_t rank = rank_of(keys), ranks = is_joined_ ? choices_ * rank : rank;
  if (role == WeightRole::lora_mask) return Meta::tensor(dtype, {choices_, ranks});
  Shape shape{ranks, matrices_.at(keys[0]).columns};
  if (role == WeightRole::lora_b) {
    shape = {0, ranks};
    for (const std::string& key : keys) shape[0] = shape[0] + matrices_.at(key).rows;
  }
  if (is_stacked()) shape.insert(shape.begin(), choices_);
  return Meta::tensor(dtype, shape);
}

Tensor LoraStacks::of_choice(const std::vector<std::string>& keys, WeightRole role, DType dtype,
                             const LoraParts& parts) const {
  const std::int64_t rank = rank_of(keys);
  std::int64_t rows = 0;
  for (const std::string& key : keys) rows += matrices_.at(key).rows;
  const bool is_a = role == WeightRole::lora_a;
  const Shape shape = is_a ? Shape{rank, matrices_.at(keys[0]).columns} : Shape{rows, rank};
  Tensor made = Tensor::empty(Meta::tensor(dtype, shape));
  std::int64_t first = 0, first_row = 0;
  for (const std::string& key : keys) {
    if (const auto found = parts.find(key); found != parts.end()) {
      if (is_a) {
        copy_a(found->second, made, first);
      } else {
        copy_b(found->second, made, first_row, first);
      }
    }
    first += rank_in(key);
    first_row += matrices_.at(key).rows;
  }
  return made;
}

Tensor LoraStacks::whole(const std::vector<std::string>& keys, WeightRole role, DType dtype) const {
  if (!is_joined_) return of_choice(keys, role, dtype, parts_[0]);
  Tensor joined = Tensor::empty(meta(keys, role, dtype));
  if (role == WeightRole::lora_mask) {
    const std::int64_t columns = joined.meta.shape[1].number(), rank = columns / choices_;
    for (std::int64_t choice = 0; choice < choices_; ++choice)
      for (std::int64_t i = 0; i < rank; ++i) store_float(dtype, joined.data(), choice * (columns + rank) + i, 1);
    return joined;
  }
  // A of one choice follows that of another; of B each row has those of all choices.
  const std::int64_t runs = role == WeightRole::lora_a ? 1 : joined.meta.shape[0].number();
  for (std::size_t choice = 0; choice < parts_.size(); ++choice) {
    const Tensor one = of_choice(keys, role, dtype, parts_[choice]);
    const auto bytes = static_cast<std::size_t>(one.meta.bytes().number() / runs);
    for (std::size_t run = 0; run < static_cast<std::size_t>(runs); ++run)
      std::memcpy(joined.data() + (run * parts_.size() + choice) * bytes, one.data() + run * bytes, bytes);
  }
  return joined;
}

}  // namespace weft
