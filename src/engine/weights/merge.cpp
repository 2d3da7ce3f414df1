// The part of Weights that decides which weights are merged into one, and why others are not.

#include <algorithm>

#include "base/error.h"
#include "engine/weights/weights.h"
#include "io/quantized_weight.h"

namespace weft {

// Whether each block of scales belongs to one of the weights, when their rows are merged. The last may end within one.
bool Weights::has_whole_blocks(const std::vector<std::string>& keys) const {
  if (keys.size() == 1 || !is_quantized(keys[0]) || config_of_codes(keys[0]).block_rows == 0) return true;
  const auto is_whole = [&](const std::string& key) {
    return checkpoint_.tensor(key).meta.shape[0].number() % config_of_codes(keys[0]).block_rows == 0;
  };
  return std::all_of(keys.begin(), keys.end() - 1, is_whole);
}

// "" where the rows of the weights can be merged.
std::string Weights::reason_against_merge(const std::vector<std::string>& keys) const {
  const QuantizationConfig* config = quantization(keys);
  for (const std::string& key : keys) {
    if (is_quantized(key) != is_quantized(keys[0])) return "only some of them are quantized";
    // Schemes differ, but blocks of groups may be of one type all the same.
    if (is_quantized(key) && config_of(key) != config_of(keys[0]) && !(is_grouped(key) && is_grouped(keys[0])))
      return "they are quantized in different ways";
    if ((quantization({key}) == nullptr) != (config == nullptr)) {
      if (!has_whole_blocks(keys))
        return fmt::format("blocks of {} rows cross the borders between them", config_of_codes(keys[0]).block_rows);
      // A product with one scale of x needs one scale of the weight, and merged weights have several.
      return fmt::format("{} multiplies codes of one scale alone", device_text(context_.device.id));
    }
    if (config == nullptr) {
      if (plain_meta({key}, WeightRole::linear).dtype != plain_meta({keys[0]}, WeightRole::linear).dtype)
        return "they have different types";
      if (!has_same_order(key, keys[0])) return "they want the columns of their input in different orders";
      continue;
    }
    const QuantizedNames first = quantized_names(*config, keys[0]), names = quantized_names(*config, key);
    const auto agrees = [&](std::string QuantizedNames::*member) {
      return (names.*member).empty() || number_in(checkpoint_, names.*member) == number_in(checkpoint_, first.*member);
    };
    if (!agrees(&QuantizedNames::input_scale)) return "the scales of their inputs differ";
    if (!agrees(&QuantizedNames::global_scale)) return "their scales of all elements differ";
  }
  return "";
}

bool Weights::can_merge(const std::vector<std::string>& keys) {
  const std::string reason = reason_against_merge(keys);
  if (!reason.empty() && !facts_.is_exact() && is_quantized(keys[0])) unmerged_[reason].insert(keys[0]);
  if (reason.empty() && checkpoint_.is_dummy() && !order_key({keys[0]}).empty()) assumed_orders_.insert(keys[0]);
  return reason.empty();
}

std::vector<std::string> Weights::unmerged() const {
  std::vector<std::string> sentences;
  for (const auto& [reason, firsts] : unmerged_) {
    const std::size_t others = firsts.size() - 1;
    sentences.push_back(fmt::format("{} and the weights that share its input{} are multiplied one by one: {}",
                                    *firsts.begin(),
                                    others == 0 ? "" : fmt::format(", and {} more such groups,", others), reason));
  }
  if (!assumed_orders_.empty())
    sentences.push_back(
        fmt::format("[{}] has no weights, which state the order of their groups: {} and the weights that share its "
                    "input ({} such groups in all) are merged as if their orders were equal",
                    checkpoint_.path(), *assumed_orders_.begin(), assumed_orders_.size()));
  return sentences;
}

}  // namespace weft
