#include "io/layer_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_last_of_period(std::int64_t layer, std::int64_t period) { return (layer + 1) % period == 0; }

std::vector<bool> windows_of_period(const WindowFacts& window, std::int64_t period, std::int64_t layers) {
  std::vector<bool> result = all_but_every(period, layers);
  if (window.begins_without)
    for (std::int64_t layer = 0; layer < layers; ++layer) result[static_cast<std::size_t>(layer)] = layer % period != 0;
  return result;
}

// Whether each layer is local, from lists like [[["global", "local"], 12]].
std::vector<bool> layers_of_types(const JsonFields& fields, std::string_view key, std::int64_t layer_count) {
  std::vector<bool> layers;
  const Json* lists = fields.value(key);
  if (lists == nullptr) return layers;
  const auto refuse = [&] {
    fail_user(
        "[{}] {} must be lists of \"global\" and \"local\" with their repetitions for num_hidden_layers {}, but is "
        "{}",
        fields.where(), key, layer_count, shown_json(*lists));
  };
  if (!lists->is_array()) refuse();
  for (const Json& list : *lists) {
    const bool is_pair = list.is_array() && list.size() == 2 && list[0].is_array() && list[1].is_number_unsigned();
    if (!is_pair || list[1].get<std::uint64_t>() > static_cast<std::uint64_t>(layer_count)) refuse();
    for (std::uint64_t i = 0; i < list[1].get<std::uint64_t>(); ++i)
      for (const Json& word : list[0]) {
        const bool is_surplus = static_cast<std::int64_t>(layers.size()) == layer_count;
        if (is_surplus || (word != "global" && word != "local")) refuse();
        layers.push_back(word == "local");
      }
  }
  if (static_cast<std::int64_t>(layers.size()) != layer_count) refuse();
  return layers;
}

// The period of layers without a window: a number, or as in EXAONE's files a word like LLLG (local and global layers).
std::int64_t window_period(const JsonFields& fields, std::int64_t otherwise) {
  constexpr const char* kPattern = "sliding_window_pattern";
  const Json* value = fields.value(kPattern);
  if (value == nullptr || !value->is_string())
    return integer_in(fields, kPattern, {1, kLayers.greatest}).value_or(otherwise);
  const std::string word = fields.find_text(kPattern).value();
  const bool is_period = !word.empty() && word == std::string(word.size() - 1, 'L') + "G";
  USER_CHECK(is_period, "[{}] {} must be a number or a word like LLLG, but is {}", fields.where(), kPattern,
             quote(word));
  return static_cast<std::int64_t>(word.size());
}

// Checks the config of an architecture without a window. For these, transformers computes all layers without one and
// ignores the key, but other programs apply it. So a window that would change the result is an error.
void check_has_no_window(const JsonFields& fields, const ModelConfig& config) {
  const auto length = integer_in(fields, "sliding_window", kContexts);
  USER_CHECK(!length || *length >= config.context_length || !fields.find_boolean("use_sliding_window").value_or(true),
             "[{}] sliding_window must be null: windows are not supported in layers of {}, but is {}", fields.where(),
             config.architecture, *length);
}

// UserError if layer_types, a list or one word for all layers, has layers with a state in place of attention.
void check_has_attention(const JsonFields& fields) {
  constexpr const char* kKey = "layer_types";
  const Json* words = fields.value(kKey);
  if (words == nullptr) return;
  for (const Json& one : words->is_array() ? *words : Json::array({*words}))
    USER_CHECK(one != "mamba" && one != "linear_attention",
               "[{}] {} has {}: layers of Mamba, and others without attention, are not supported", fields.where(), kKey,
               json_text(one));
}

// The inverse of part_below, by bisection.
double deviations_of(double part) {
  if (part == 0) return -std::numeric_limits<double>::infinity();
  double low = -40, high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (part_below(middle) < part ? low : high) = middle;
  }
  return high;
}

struct HeadsOfLayer {
  std::int64_t dim, kv_count;

  friend bool operator==(const HeadsOfLayer&, const HeadsOfLayer&) = default;
};

HeadsOfLayer heads_of(const ModelConfig& config, int layer) {
  return {config.head_dim_of(layer), config.kv_head_count_of(layer)};
}

// The heads of a layer with these changes of the usual ones.
HeadsOfLayer read_heads(const JsonFields& layer, const Json& changes, const HeadsOfLayer& usual) {
  constexpr std::string_view kHeadDim = "head_dim", kKvHeads = "num_key_value_heads";
  for (const auto& [key, value] : changes.items())
    USER_CHECK(key == kHeadDim || key == kKvHeads, "[{}] {} is not supported: layers may differ by {} and {}",
               layer.where(), layer.name(key), kHeadDim, kKvHeads);
  return {integer_in(layer, kHeadDim, kHeadDims).value_or(usual.dim),
          integer_in(layer, kKvHeads, kHeads).value_or(usual.kv_count)};
}

void set_windows(std::vector<bool> layers, ModelConfig& config) {
  const auto count = std::count(layers.begin(), layers.end(), true);
  if (!layers.empty() && count == 0) config.sliding_window.reset();
  if (count > 0 && count < config.layer_count) config.has_window = std::move(layers);
}

}  // namespace

std::vector<bool> all_but_every(std::int64_t period, std::int64_t layers) {
  std::vector<bool> result;
  for (std::int64_t layer = 0; layer < layers; ++layer) result.push_back(!is_last_of_period(layer, period));
  return result;
}

std::optional<std::int64_t> number_of_all_layers(const JsonFields& fields, std::string_view key,
                                                 Range<std::int64_t> range) {
  const Json* value = fields.value(key);
  if (value == nullptr || !value->is_array()) return integer_in(fields, key, range);
  const std::vector<std::int64_t> numbers = fields.find_integers(key);
  USER_CHECK(!numbers.empty() && std::count(numbers.begin(), numbers.end(), numbers.front()) == std::ssize(numbers),
             "[{}] {} must be one number for all layers, but is {}", fields.where(), fields.name(key),
             shown_json(*value));
  const Json first{{key, numbers.front()}};
  return integer_in(JsonFields(first, fields.where()), key, range);
}

std::vector<bool> layers_of_words(const JsonFields& fields, std::string_view key,
                                  const std::vector<std::string_view>& words,
                                  const std::vector<std::string_view>& others, std::int64_t layer_count) {
  std::vector<bool> layers;
  const Json* list = fields.value(key);
  if (list == nullptr) return layers;
  USER_CHECK(list->is_array() && static_cast<std::int64_t>(list->size()) == layer_count,
             "[{}] {} must be a list of num_hidden_layers {} words, but is {}", fields.where(), key, layer_count,
             json_text(*list));
  const auto has = [](const std::vector<std::string_view>& all, const Json& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  for (const Json& one : *list) {
    USER_CHECK(has(words, one) || has(others, one), "[{}] {} must be {} or {}, but has {}", fields.where(), key,
               fmt::join(others, ", "), fmt::join(words, " or "), json_text(one));
    layers.push_back(has(words, one));
  }
  return layers;
}

// The rules are those of transformers.
void read_windows(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  const std::optional<WindowFacts>& window = facts.window;
  const bool is_asked_for = !window || !window->first_layer || !window->has_switch ||
                            fields.find_boolean("use_sliding_window").value_or(false);
  if (!window) {
    check_has_no_window(fields, config);
  } else if (is_asked_for) {
    config.sliding_window = integer_in(fields, "sliding_window", kContexts);
  }
  using Rule = WindowFacts::Rule;
  std::vector<bool> layers;
  if (window && !window->types.empty()) {
    layers = layers_of_types(fields, window->types, config.layer_count);
  } else if (!window || window->rule != Rule::all) {
    std::vector<std::string_view> others{"full_attention"};
    if (facts.recurrent) {
      others.emplace_back("attention");
      others.insert(others.end(), facts.recurrent->words.begin(), facts.recurrent->words.end());
    } else {
      check_has_attention(fields);
    }
    others.insert(others.end(), facts.words_of_layers.begin(), facts.words_of_layers.end());
    layers = layers_of_words(fields, "layer_types", {"sliding_attention"}, others, config.layer_count);
  }
  if (!config.sliding_window) {
    USER_CHECK(std::count(layers.begin(), layers.end(), true) == 0,
               "[{}] layer_types has sliding_attention, which wants a sliding_window, but {}", fields.where(),
               is_asked_for ? "there is none" : "use_sliding_window is off");
    return;
  }
  USER_CHECK(!layers.empty() || window->period || !fields.has("sliding_window_pattern"),
             "[{}] sliding_window_pattern is not supported without layer_types", fields.where());
  if (layers.empty() && window->period) {
    layers = windows_of_period(*window, window_period(fields, *window->period), config.layer_count);
  } else if (layers.empty() && window->first_layer) {
    const auto stated = integer_in(fields, "max_window_layers", {0, kLayers.greatest});
    const std::int64_t first = stated.value_or(*window->first_layer);
    for (std::int64_t layer = 0; layer < config.layer_count; ++layer)
      layers.push_back(window->rule == Rule::all            ? true
                       : window->rule == Rule::every_second ? layer < first && layer % 2 == 0
                                                            : layer >= first);
  }
  set_windows(std::move(layers), config);
}

// The pattern is a list with an element for each layer, or a period.
void read_windows(const GgufFields& fields, const Gguf& gguf, const std::optional<WindowFacts>& window,
                  ModelConfig& config) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  const auto length = integer_in(fields, "attention.sliding_window", {0, kContexts.greatest});
  if (length && *length > 0) config.sliding_window = length;
  const GgufValue* pattern = gguf.find(fields.name(kPattern));
  const bool has_period = window && window->period;
  USER_CHECK(pattern == nullptr || has_period, "[{}] {} is not supported: all layers or none have a window",
             fields.where(), fields.name(kPattern));
  if (!config.sliding_window || !has_period) return;
  if (pattern == nullptr || !pattern->is_array) {
    const auto period = integer_in(fields, kPattern, {1, kLayers.greatest});
    set_windows(windows_of_period(*window, period.value_or(*window->period), config.layer_count), config);
    return;
  }
  USER_CHECK(pattern->type == GgufType::boolean && static_cast<std::int64_t>(pattern->count) == config.layer_count,
             "[{}] {} must be an array of {} booleans, but is {}", fields.where(), fields.name(kPattern),
             config.layer_count, pattern->type_name());
  std::vector<bool> layers;
  for (const std::byte value : pattern->data) layers.push_back(value != std::byte{0});
  set_windows(std::move(layers), config);
}

void read_gate_cuts(const JsonFields& fields, ModelConfig& config) {
  constexpr const char* kKey = "activation_sparsity_pattern";
  const Json* value = fields.value(kKey);
  if (value == nullptr) return;
  const Json list = value->is_array() ? *value : Json(static_cast<std::size_t>(config.layer_count), *value);
  USER_CHECK(static_cast<std::int64_t>(list.size()) == config.layer_count,
             "[{}] {} must be a number or a list of num_hidden_layers {} numbers, but has {}", fields.where(), kKey,
             config.layer_count, list.size());
  for (const Json& part : list) {
    const double number = part.is_number() ? part.get<double>() : -1;
    USER_CHECK(number >= 0 && number < 1, "[{}] {} must be from 0 to below 1, but has {}", fields.where(), kKey,
               shown_json(part));
    config.gate_cuts.push_back(deviations_of(number));
  }
}

std::vector<double> numbers_of_layers(const GgufFields& fields, const Gguf& gguf, std::string_view key,
                                      std::int64_t layer_count) {
  const GgufValue* value = gguf.find(fields.name(key));
  if (value == nullptr) return {};
  USER_CHECK(value->is_array && value->type == GgufType::f32 && static_cast<std::int64_t>(value->count) == layer_count,
             "[{}] {} must be an array of {} f32, but is {}", fields.where(), fields.name(key), layer_count,
             value->type_name());
  std::vector<double> numbers;
  for (std::uint64_t layer = 0; layer < value->count; ++layer) {
    float number = 0;  // -infinity is a value of these files
    std::memcpy(&number, value->data.data() + layer * sizeof number, sizeof number);
    USER_CHECK(!std::isnan(number) && number < std::numeric_limits<float>::infinity(),
               "[{}] {} must be numbers or -infinity, but has {}", fields.where(), fields.name(key), number);
    numbers.push_back(number);
  }
  return numbers;
}

void read_gate_cuts(const GgufFields& fields, const Gguf& gguf, ModelConfig& config) {
  config.gate_cuts = numbers_of_layers(fields, gguf, "activation_sparsity_scale", config.layer_count);
}

double part_below(double deviations) { return std::erfc(-deviations / std::numbers::sqrt2) / 2; }

// Once the key is there, transformers takes the heads of these layers from no other key.
void read_layer_overrides(const JsonFields& fields, ModelConfig& config) {
  constexpr const char* kKey = "per_layer_config";
  const auto layers = fields.find_object(kKey);
  if (!layers) return;
  config.full_head_dim = config.full_kv_head_count = 0;
  std::vector<HeadsOfLayer> heads(static_cast<std::size_t>(config.layer_count), heads_of(config, 0));
  for (const auto& [name, changes] : fields.value(kKey)->items()) {
    std::size_t layer = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    USER_CHECK(error == std::errc() && end == name.data() + name.size() && layer < heads.size(),
               "[{}] {} must have numbers below num_hidden_layers {} as keys, but has {}", fields.where(), kKey,
               config.layer_count, quote(name));
    if (const auto own = layers->find_object(name)) heads[layer] = read_heads(*own, changes, heads[layer]);
  }
  for (int layer = 0; layer < config.layer_count; ++layer) {
    const HeadsOfLayer& own = heads[static_cast<std::size_t>(layer)];
    if (!config.slides(layer))
      std::tie(config.full_head_dim, config.full_kv_head_count) = std::tie(own.dim, own.kv_count);
  }
  for (int layer = 0; layer < config.layer_count; ++layer) {
    const HeadsOfLayer &own = heads[static_cast<std::size_t>(layer)], wanted = heads_of(config, layer);
    USER_CHECK(own == wanted,
               "[{}] {} must give all layers {} a window {} key heads of width {}, but layer {} has {} of width {}",
               fields.where(), kKey, config.slides(layer) ? "with" : "without", wanted.kv_count, wanted.dim, layer,
               own.kv_count, own.dim);
  }
}

void read_layer_lists(const GgufFields& fields, const Gguf& gguf, ModelConfig& config) {
  const auto numbers = [&](const char* key, auto has_some) {
    const GgufValue* value = gguf.find(fields.name(key));
    if (value == nullptr || !value->is_array) return std::vector<std::int64_t>();
    std::vector<std::int64_t> list = gguf.find_integers(fields.name(key)).value();
    USER_CHECK(static_cast<std::int64_t>(list.size()) == config.layer_count,
               "[{}] {} must be a number or a list of {} of them, but has {}", fields.where(), fields.name(key),
               config.layer_count, list.size());
    for (int layer = 0; layer < config.layer_count; ++layer)
      USER_CHECK(list[static_cast<std::size_t>(layer)] >= (has_some(layer) ? 1 : 0),
                 "[{}] {} must be above 0 for all layers, but has {}", fields.where(), fields.name(key),
                 list[static_cast<std::size_t>(layer)]);
    return list;
  };
  const auto check = [&](const char* key, const std::vector<std::int64_t>& list, auto of_layer) {
    for (int layer = 0; layer < static_cast<int>(list.size()); ++layer) {
      if (list[static_cast<std::size_t>(layer)] == 0) continue;  // a layer without attention
      const std::int64_t number = list[static_cast<std::size_t>(layer)], wanted = of_layer(layer);
      USER_CHECK(number == wanted, "[{}] {} must be {} for layer {}, as for other layers of its kind, but is {}",
                 fields.where(), fields.name(key), wanted, layer, number);
    }
  };
  const std::vector<std::int64_t> heads =
      numbers("attention.head_count_kv", [&](int layer) { return config.attends(layer); });
  for (int layer = 0; layer < static_cast<int>(heads.size()); ++layer)
    if (config.attends(layer))
      (config.slides(layer) ? config.kv_head_count : config.full_kv_head_count) =
          heads[static_cast<std::size_t>(layer)];
  check("attention.head_count_kv", heads, [&](int layer) { return config.kv_head_count_of(layer); });
  // Only models with two widths of heads may leave out the values of a layer.
  for (int layer = 0; layer < config.layer_count && config.full_head_dim != 0; ++layer)
    if (!config.slides(layer) && config.has_own_kv(layer))
      config.full_values_are_keys |= gguf.find_tensor(fmt::format("blk.{}.attn_v.weight", layer)) == nullptr;
  const std::vector<std::int64_t> widths =
      numbers("feed_forward_length", [&](int layer) { return config.has_dense(layer); });
  config.widens_shared_layers = config.halves.empty() && !widths.empty() && widths.back() == 2 * widths.front();
  check("feed_forward_length", widths, [&](int layer) { return config.intermediate_size_of(layer); });
}

namespace {

void read_rotated_by_facts(const ArchitectureFacts& facts, ModelConfig& config) {
  const RotaryFacts& rotary = facts.rotary;
  if (facts.first_position_row) {
    config.first_position_row = *facts.first_position_row;
    config.position_rows = config.first_position_row + config.context_length;
  }
  if (facts.first_position_row || rotary.is_absent)
    config.is_rotated.assign(static_cast<std::size_t>(config.layer_count), false);
  if (rotary.unrotated_period) config.is_rotated = all_but_every(*rotary.unrotated_period, config.layer_count);
  if (rotary.only_rotates_windows && config.sliding_window)
    for (int layer = 0; layer < config.layer_count; ++layer) config.is_rotated.push_back(config.slides(layer));
}

}  // namespace

void read_rotated_layers(const GgufFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  const RotaryFacts& rotary = facts.rotary;
  read_rotated_by_facts(facts, config);
  if (!rotary.switch_in_gguf.empty() && !fields.find_boolean(rotary.switch_in_gguf).value_or(true))
    config.is_rotated.assign(static_cast<std::size_t>(config.layer_count), false);
}

void read_rotated_layers(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  const RotaryFacts& rotary = facts.rotary;
  read_rotated_by_facts(facts, config);
  if (!rotary.kind_in_folders.empty()) {
    const std::string kind = fields.find_text(rotary.kind_in_folders).value_or("nope");
    USER_CHECK(kind == "rope" || kind == "nope", "[{}] {} must be rope or nope, but is {}", fields.where(),
               rotary.kind_in_folders, quote(kind));
    if (kind == "nope") config.is_rotated.assign(static_cast<std::size_t>(config.layer_count), false);
  }
  // A window that no layer has.
  if (rotary.only_rotates_windows && fields.has("sliding_window") && !config.sliding_window)
    config.is_rotated.assign(static_cast<std::size_t>(config.layer_count), false);
  if (!rotary.unrotated_period) return;
  const auto period = integer_in(fields, "no_rope_layer_interval", {1, kLayers.greatest});
  if (period) config.is_rotated = all_but_every(*period, config.layer_count);
  const std::vector<std::int64_t> listed = fields.find_integers("no_rope_layers");
  if (listed.empty()) return;
  USER_CHECK(static_cast<std::int64_t>(listed.size()) == config.layer_count,
             "[{}] no_rope_layers must be a list of num_hidden_layers {} numbers, but has {}", fields.where(),
             config.layer_count, listed.size());
  config.is_rotated.clear();
  for (const std::int64_t is_rotated : listed) config.is_rotated.push_back(is_rotated != 0);
}

}  // namespace weft
