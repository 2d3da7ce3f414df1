#include "io/feed_forward_config.h"

#include <algorithm>

#include "base/error.h"
#include "io/layer_config.h"

namespace weft {
namespace {

constexpr std::string_view kAdjustsWidth = "block_auto_adjust_ff_dim", kWidthFactor = "block_ffn_dim_multiplier",
                           kWidthMultiple = "block_multiple_of";

// As LFM2 computes the width of its feed-forward (ArchitectureFacts::adjusts_feed_forward_width).
std::int64_t adjusted_width(const JsonFields& fields, std::int64_t width) {
  if (!fields.find_boolean(kAdjustsWidth).value_or(true)) return width;
  const double factor = real_in(fields, kWidthFactor, {1e-3, 1e3}).value_or(1);
  const std::int64_t multiple = integer_in(fields, kWidthMultiple, kWidths).value_or(256);
  const auto adjusted = static_cast<std::int64_t>(factor * static_cast<double>(2 * width / 3));
  return (adjusted + multiple - 1) / multiple * multiple;
}

// If the key is absent, `otherwise`, unless that is 0.
std::int64_t stated_width(const JsonFields& fields, std::string_view key, std::int64_t otherwise) {
  if (const auto width = number_of_all_layers(fields, key, kWidths)) return *width;
  return otherwise > 0 ? otherwise : needed_integer_in(fields, key, kWidths);
}

// The width that a file states, as that of one of gate and up.
template <class Fields>
std::int64_t width_of_each(const Fields& fields, std::string_view key, const ArchitectureFacts& facts,
                           std::int64_t stated) {
  if (!facts.counts_gate_and_up) return stated;
  USER_CHECK(stated % 2 == 0, "[{}] {} must be even, because it counts the rows of gate and up, but is {}",
             fields.where(), fields.name(key), stated);
  return stated / 2;
}

}  // namespace

std::int64_t stated_feed_forward_width(const ModelConfig& config, const ArchitectureFacts& facts) {
  return facts.counts_gate_and_up ? 2 * config.intermediate_size : config.intermediate_size;
}

std::vector<std::string_view> feed_forward_keys(const ArchitectureFacts& facts) {
  std::vector<std::string_view> keys{facts.feed_forward_width};
  if (facts.adjusts_feed_forward_width) keys.insert(keys.end(), {kAdjustsWidth, kWidthFactor, kWidthMultiple});
  return keys;
}

Json feed_forward_json(const ModelConfig& config, const ArchitectureFacts& facts) {
  Json json{{facts.feed_forward_width, stated_feed_forward_width(config, facts)}};
  if (facts.adjusts_feed_forward_width) json[kAdjustsWidth] = false;
  return json;
}

std::int64_t feed_forward_width(const JsonFields& fields, const ArchitectureFacts& facts, std::int64_t hidden_size) {
  const std::int64_t width = stated_width(fields, facts.feed_forward_width, facts.default_widening * hidden_size);
  return facts.adjusts_feed_forward_width ? adjusted_width(fields, width)
                                          : width_of_each(fields, facts.feed_forward_width, facts, width);
}

std::int64_t first_or_only(const GgufFields& fields, const Gguf& gguf, const char* key, Range<std::int64_t> range) {
  const GgufValue* value = gguf.find(fields.name(key));
  if (value == nullptr || !value->is_array) return needed_integer_in(fields, key, range);
  const std::vector<std::int64_t> numbers = gguf.find_integers(fields.name(key)).value();
  USER_CHECK(!numbers.empty() && numbers.front() >= range.least && numbers.front() <= range.greatest,
             "[{}] {} must be {} to {}, but its first number is {}", fields.where(), fields.name(key), range.least,
             range.greatest, numbers.empty() ? "missing" : std::to_string(numbers.front()));
  return numbers.front();
}

// A list has a 0 for layers without a feed-forward for all tokens.
std::int64_t feed_forward_width(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts,
                                const ModelConfig& config) {
  constexpr const char* kKey = "feed_forward_length";
  if (config.halves.empty()) return width_of_each(fields, kKey, facts, first_or_only(fields, gguf, kKey, kWidths));
  const GgufValue* value = gguf.find(fields.name(kKey));
  if (value == nullptr || !value->is_array) return std::max<std::int64_t>(1, fields.find_integer(kKey).value_or(0));
  const std::vector<std::int64_t> numbers = gguf.find_integers(fields.name(kKey)).value();
  std::int64_t width = 1;
  for (const std::int64_t one : numbers) width = std::max(width, one);
  USER_CHECK(width <= kWidths.greatest, "[{}] {} must be at most {}, but has {}", fields.where(), fields.name(kKey),
             kWidths.greatest, width);
  return width;
}

}  // namespace weft
