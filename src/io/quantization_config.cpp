#include "io/quantization_config.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "io/regex.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr Range<std::int64_t> kBlocks = {1, 1 << 20};

std::vector<std::string> texts_of(const JsonFields& fields, std::string_view key) {
  std::vector<std::string> texts;
  const auto* list = fields.value(key);
  if (list == nullptr) return texts;
  const bool fits =
      list->is_array() && std::all_of(list->begin(), list->end(), [](const auto& text) { return text.is_string(); });
  USER_CHECK(fits, "[{}] {} must be a list of strings, but is not", fields.where(), fields.name(key));
  for (const auto& text : *list) texts.push_back(text.template get<std::string>());
  return texts;
}

// Returns the text of the key. UserError unless it is one of `known`.
std::string text_among(const JsonFields& fields, std::string_view key, std::vector<std::string_view> known) {
  const auto text = fields.find_text(key);
  USER_CHECK(text && std::find(known.begin(), known.end(), *text) != known.end(), "[{}] {} must be {}, but is {}",
             fields.where(), fields.name(key), fmt::join(known, " or "), text ? quote(*text) : "missing");
  return *text;
}

void read_block(const JsonFields& fields, std::string_view key, QuantizationConfig& config) {
  const std::vector<std::int64_t> block = fields.find_integers(key);
  const auto fits = [](std::int64_t extent) { return extent >= kBlocks.least && extent <= kBlocks.greatest; };
  USER_CHECK(block.size() == 2 && fits(block[0]) && fits(block[1]),
             "[{}] {} must be rows and columns, each {} to {}, but is [{}]", fields.where(), fields.name(key),
             kBlocks.least, kBlocks.greatest, fmt::join(block, ", "));
  config.scheme = QuantizationScheme::block;
  config.block_rows = block[0];
  config.block_columns = block[1];
}

QuantizationConfig read_fp8(const JsonFields& fields) {
  QuantizationConfig config;
  if (fields.has("fmt")) text_among(fields, "fmt", {"e4m3", "float8_e4m3fn"});
  USER_CHECK(!fields.has("scale_fmt"), "[{}] {} is not supported: scales must be plain numbers", fields.where(),
             fields.name("scale_fmt"));
  config.static_input = text_among(fields, "activation_scheme", {"dynamic", "static"}) == "static";
  for (const auto key : {"modules_to_not_convert", "ignored_layers"})
    for (auto& name : texts_of(fields, key)) config.ignored.push_back(std::move(name));
  if (fields.has("weight_block_size")) {
    read_block(fields, "weight_block_size", config);
    USER_CHECK(!config.static_input, "[{}] {} must be dynamic where weights have blocks, but is static", fields.where(),
               fields.name("activation_scheme"));
  }
  return config;
}

JsonFields needed_object(const JsonFields& fields, std::string_view key) {
  const auto object = fields.find_object(key);
  USER_CHECK(object, "[{}] wanted {}, an object, but there is none", fields.where(), fields.name(key));
  return *object;
}

void need_integer(const JsonFields& fields, std::string_view key, std::int64_t wanted) {
  const std::int64_t value = needed_integer_in(fields, key, {0, 1 << 20});
  USER_CHECK(value == wanted, "[{}] {} must be {}, but is {}", fields.where(), fields.name(key), wanted, value);
}

// Reads "dynamic" of the activations: true, false, or the word "local" for NVFP4.
bool is_dynamic(const JsonFields& fields) {
  const auto* value = fields.value("dynamic");
  if (value != nullptr && value->is_string()) return text_among(fields, "dynamic", {"local"}) == "local";
  return fields.find_boolean("dynamic").value_or(false);
}

void check_arguments(const JsonFields& fields, const std::string& type, std::int64_t bits) {
  text_among(fields, "type", {type});
  need_integer(fields, "num_bits", bits);
  USER_CHECK(fields.find_boolean("symmetric").value_or(true),
             "[{}] {} must be true: zero points are not supported, but is false", fields.where(),
             fields.name("symmetric"));
}

void read_nvfp4(const JsonFields& weights, const JsonFields& input, QuantizationConfig& config) {
  constexpr std::int64_t kBits = 4;
  for (const JsonFields* side : {&weights, &input}) {
    check_arguments(*side, "float", kBits);
    text_among(*side, "strategy", {"tensor_group"});
    need_integer(*side, "group_size", kNvfp4Group);
  }
  config.scheme = QuantizationScheme::nvfp4;
  config.codes = DType::f4e2m1;
  config.static_input = true;
}

void read_scaled(const JsonFields& weights, const JsonFields& input, QuantizationConfig& config) {
  constexpr std::int64_t kBits = 8;
  const std::string type = text_among(weights, "type", {"float", "int"});
  config.codes = type == "int" ? DType::i8 : DType::f8e4m3;
  check_arguments(weights, type, kBits);
  check_arguments(input, type, kBits);
  USER_CHECK(!is_dynamic(weights), "[{}] {} must be false, but is true", weights.where(), weights.name("dynamic"));
  const std::string strategy = text_among(weights, "strategy", {"tensor", "channel", "block"});
  config.scale_per_row = strategy == "channel";
  if (strategy == "block") {
    USER_CHECK(config.codes == DType::f8e4m3, "[{}] {} must be float where weights have blocks, but is int",
               weights.where(), weights.name("type"));
    read_block(weights, "block_structure", config);
    text_among(input, "strategy", {"group"});
    need_integer(input, "group_size", config.block_columns);
    USER_CHECK(is_dynamic(input), "[{}] {} must be true where weights have blocks, but is false", input.where(),
               input.name("dynamic"));
    return;
  }
  config.static_input = !is_dynamic(input);
  text_among(input, "strategy", {config.static_input ? "tensor" : "token"});
  USER_CHECK(!config.static_input || config.codes == DType::f8e4m3,
             "[{}] {} must be true for int8: scales of the checkpoint are supported for fp8 alone", input.where(),
             input.name("dynamic"));
}

QuantizationConfig read_compressed_tensors(const JsonFields& fields) {
  QuantizationConfig config;
  const std::string format =
      text_among(fields, "format", {"float-quantized", "int-quantized", "naive-quantized", "nvfp4-pack-quantized"});
  config.ignored = texts_of(fields, "ignore");
  USER_CHECK(!fields.has("kv_cache_scheme"), "[{}] {} is not supported, but is set", fields.where(),
             fields.name("kv_cache_scheme"));
  const JsonFields groups = needed_object(fields, "config_groups");
  const auto& all = *fields.value("config_groups");
  USER_CHECK(all.size() == 1, "[{}] {} must hold one group, but holds {}", fields.where(), fields.name("config_groups"),
             all.size());
  const JsonFields group = needed_object(groups, all.begin().key());
  const std::vector<std::string> targets = texts_of(group, "targets");
  USER_CHECK(targets == std::vector<std::string>{"Linear"}, "[{}] {} must be [Linear], but is [{}]", group.where(),
             group.name("targets"), fmt::join(targets, ", "));
  const JsonFields weights = needed_object(group, "weights"), input = needed_object(group, "input_activations");
  USER_CHECK(!group.has("output_activations"), "[{}] {} is not supported, but is set", group.where(),
             group.name("output_activations"));
  if (format == "nvfp4-pack-quantized") {
    read_nvfp4(weights, input, config);
  } else {
    read_scaled(weights, input, config);
  }
  return config;
}

bool is_named(std::string_view module, const std::string& pattern) {
  constexpr std::string_view kRegex = "re:";
  if (!pattern.starts_with(kRegex)) return module == pattern || module.starts_with(pattern + ".");
  Regex::Scratch scratch;
  const auto match = Regex::compile(std::string_view(pattern).substr(kRegex.size())).find(module, 0, scratch);
  return match && match->begin == 0;
}

}  // namespace

bool QuantizationConfig::quantizes(std::string_view weight) const {
  if (!weight.ends_with(kWeight)) return false;
  const std::string_view module = weight.substr(0, weight.size() - kWeight.size());
  const std::size_t dot = module.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? module : module.substr(dot + 1);
  if (last == "lm_head" || last == "embed_tokens" || last == "embed_tokens_per_layer") return false;
  return std::none_of(ignored.begin(), ignored.end(),
                      [&](const std::string& pattern) { return is_named(module, pattern); });
}

std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config) {
  const auto fields = config.find_object("quantization_config");
  if (!fields) return std::nullopt;
  const std::string method = text_among(*fields, "quant_method", {"fp8", "compressed-tensors"});
  QuantizationConfig result = method == "fp8" ? read_fp8(*fields) : read_compressed_tensors(*fields);
  result.method = method;
  return result;
}

QuantizedNames quantized_names(const QuantizationConfig& config, std::string_view weight) {
  CHECK(weight.ends_with(kWeight), "a quantized weight is named {}", weight);
  const std::string module(weight.substr(0, weight.size() - kWeight.size()));
  using enum QuantizationScheme;
  if (config.scheme == nvfp4)
    return {module + ".weight_packed", module + ".weight_scale", module + ".weight_global_scale",
            module + ".input_global_scale"};
  const bool is_inverse = config.scheme == block && config.method == "fp8";
  return {module + ".weight", module + (is_inverse ? ".weight_scale_inv" : ".weight_scale"), "",
          config.static_input ? module + ".input_scale" : ""};
}

}  // namespace weft
