#include "io/quantization_config.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "io/known_keys.h"
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
  USER_CHECK(text && std::find(known.begin(), known.end(), *text) != known.end(), "[{}] {} must be {}, but is {}{}",
             fields.where(), fields.name(key), fmt::join(known, " or "), text ? quote(*text) : "missing",
             text ? suggestion(*text, std::vector<std::string>(known.begin(), known.end())) : "");
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

// Patterns are compiled once: names are asked for many times.
void add_ignored(const std::vector<std::string>& modules, QuantizationConfig& config) {
  constexpr std::string_view kRegex = "re:";
  for (const std::string& name : modules) {
    const std::string_view pattern = std::string_view(name).substr(name.starts_with(kRegex) ? kRegex.size() : 0);
    config.ignored.push_back(
        {name, name.starts_with(kRegex) ? std::make_shared<const Regex>(Regex::compile(pattern)) : nullptr});
  }
}

QuantizationConfig read_fp8(const JsonFields& fields) {
  QuantizationConfig config;
  if (fields.has("fmt")) text_among(fields, "fmt", {"e4m3", "float8_e4m3fn"});
  USER_CHECK(!fields.has("scale_fmt"), "[{}] {} is not supported: scales must be plain numbers", fields.where(),
             fields.name("scale_fmt"));
  config.static_input = text_among(fields, "activation_scheme", {"dynamic", "static"}) == "static";
  for (const auto key : {"modules_to_not_convert", "ignored_layers"}) add_ignored(texts_of(fields, key), config);
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

bool is_dynamic(const JsonFields& fields) { return fields.find_boolean("dynamic").value_or(false); }

// A group of K columns; 0 for -1 or a missing key, a whole row.
std::int64_t read_group_size(const JsonFields& fields, std::string_view key) {
  constexpr std::int64_t kStep = 32;
  const std::int64_t size = fields.find_integer(key).value_or(-1);
  USER_CHECK(size == -1 || (size >= kStep && size <= kBlocks.greatest && size % kStep == 0),
             "[{}] {} must be -1 or a multiple of {}, but is {}", fields.where(), fields.name(key), kStep, size);
  return size == -1 ? 0 : size;
}

bool needed_boolean(const JsonFields& fields, std::string_view key) {
  const auto value = fields.find_boolean(key);
  USER_CHECK(value, "[{}] wanted {}, true or false, but there is none", fields.where(), fields.name(key));
  return *value;
}

void need_false(const JsonFields& fields, std::string_view key, const char* what) {
  USER_CHECK(!fields.find_boolean(key).value_or(false), "[{}] {} must be false: {} not supported, but is true",
             fields.where(), fields.name(key), what);
}

QuantizationConfig read_gptq(const JsonFields& fields) {
  constexpr std::string_view kFormat = "checkpoint_format";
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  GroupedCodes& groups = config.groups;
  groups.layout = GroupLayout::gptq;
  const std::int64_t bits = needed_integer_in(fields, "bits", {1, 64});
  USER_CHECK(bits == 4 || bits == 8, "[{}] {} must be 4 or 8, but is {}", fields.where(), fields.name("bits"), bits);
  groups.bits = static_cast<int>(bits);
  groups.group_size = read_group_size(fields, "group_size");
  groups.has_zero_points = true;  // stored even if they are all alike
  groups.zeros_less_one = !fields.has(kFormat) || text_among(fields, kFormat, {"gptq", "gptq_v2"}) == "gptq";
  groups.is_reordered = needed_boolean(fields, "desc_act") && groups.group_size > 0;
  need_false(fields, "lm_head", "a quantized head is");
  for (const auto key : {"dynamic", "modules_in_block_to_quantize"}) {
    const auto* value = fields.value(key);
    USER_CHECK(value == nullptr || value->empty(), "[{}] {} is not supported, but is {}", fields.where(),
               fields.name(key), shown_json(*value));
  }
  return config;
}

QuantizationConfig read_awq(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  config.groups.layout = GroupLayout::awq;
  need_integer(fields, "bits", 4);
  config.groups.group_size = read_group_size(fields, "group_size");
  USER_CHECK(needed_boolean(fields, "zero_point"), "[{}] {} must be true, but is false", fields.where(),
             fields.name("zero_point"));
  if (fields.has("version")) text_among(fields, "version", {"gemm", "GEMM"});
  config.groups.has_zero_points = true;
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  config.ignores_by_part = true;
  return config;
}

QuantizationConfig read_bitsandbytes(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  config.groups.layout = GroupLayout::bitsandbytes;
  need_false(fields, "load_in_8bit", "weights of 8 bits are");
  USER_CHECK(needed_boolean(fields, "load_in_4bit"), "[{}] {} must be true, but is false", fields.where(),
             fields.name("load_in_4bit"));
  text_among(fields, "bnb_4bit_quant_type", {"nf4"});
  if (fields.has("bnb_4bit_quant_storage")) text_among(fields, "bnb_4bit_quant_storage", {"uint8"});
  config.groups.has_quantized_scales = fields.find_boolean("bnb_4bit_use_double_quant").value_or(false);
  add_ignored(texts_of(fields, "llm_int8_skip_modules"), config);
  config.ignores_by_part = true;
  return config;
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

// The int4 weights of "pack-quantized", whose input stays as it is.
void read_packed(const JsonFields& group, const JsonFields& weights, QuantizationConfig& config) {
  USER_CHECK(!group.has("input_activations"), "[{}] {} must be null for weights in int4, but is set", group.where(),
             group.name("input_activations"));
  text_among(weights, "type", {"int"});
  need_integer(weights, "num_bits", 4);
  USER_CHECK(!is_dynamic(weights), "[{}] {} must be false, but is true", weights.where(), weights.name("dynamic"));
  config.scheme = QuantizationScheme::grouped;
  config.groups.has_zero_points = !weights.find_boolean("symmetric").value_or(true);
  const bool has_groups = text_among(weights, "strategy", {"group", "channel"}) == "group";
  if (has_groups) config.groups.group_size = read_group_size(weights, "group_size");
  if (!weights.has("actorder")) return;
  // With "static" and "weight" the groups are consecutive columns in the file, too.
  const auto* order = weights.value("actorder");
  const bool is_true = order->is_boolean() && order->get<bool>();
  const std::string word =
      order->is_boolean() ? "" : text_among(weights, "actorder", {"group", "dynamic", "weight", "static"});
  config.groups.is_reordered = config.groups.group_size > 0 && (is_true || word == "group" || word == "dynamic");
}

void add_unknown_keys(KeyTable table, const JsonFields& fields, std::string_view object, QuantizationConfig& config) {
  const auto own = fields.find_object(object);
  if (!own) return;
  const auto keys = unknown_keys(table, *fields.value(object), fields.where(), fields.name(object) + ".");
  config.unknown_keys.insert(config.unknown_keys.end(), keys.begin(), keys.end());
}

QuantizationConfig read_compressed_tensors(const JsonFields& fields) {
  QuantizationConfig config;
  constexpr std::string_view kPacked = "pack-quantized";
  const std::string format = text_among(
      fields, "format", {"float-quantized", "int-quantized", "naive-quantized", "nvfp4-pack-quantized", kPacked});
  add_ignored(texts_of(fields, "ignore"), config);
  const auto sparsity = fields.find_object("sparsity_config");
  if (sparsity && sparsity->has("format")) text_among(*sparsity, "format", {"dense"});
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
  const JsonFields weights = needed_object(group, "weights");
  if (group.has("format")) text_among(group, "format", {format});
  add_unknown_keys(KeyTable::quantization_group, groups, all.begin().key(), config);
  for (const char* side : {"weights", "input_activations"})
    add_unknown_keys(KeyTable::quantization_arguments, group, side, config);
  USER_CHECK(!group.has("output_activations"), "[{}] {} is not supported, but is set", group.where(),
             group.name("output_activations"));
  if (format == kPacked) {
    read_packed(group, weights, config);
    return config;
  }
  const JsonFields input = needed_object(group, "input_activations");
  if (format == "nvfp4-pack-quantized") {
    read_nvfp4(weights, input, config);
  } else {
    read_scaled(weights, input, config);
  }
  return config;
}

// The experts alone are quantized.
QuantizationConfig read_mxfp4(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::mxfp4;
  config.codes = DType::f4e2m1;
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  for (const IgnoredModules& module : config.ignored)
    USER_CHECK(module.name.find("experts") == std::string::npos,
               "[{}] {} must leave experts to their blocks, but has {}", fields.where(),
               fields.name("modules_to_not_convert"), quote(module.name));
  return config;
}

QuantizedNames grouped_names(const GroupedCodes& groups, const std::string& module) {
  QuantizedNames names;
  switch (groups.layout) {
    case GroupLayout::compressed_tensors:
      names.codes = module + ".weight_packed";
      names.scale = module + ".weight_scale";
      names.shape = module + ".weight_shape";
      if (groups.has_zero_points) names.zero_points = module + ".weight_zero_point";
      if (groups.is_reordered) names.groups = module + ".weight_g_idx";
      break;
    case GroupLayout::gptq:
      names.groups = module + ".g_idx";
      [[fallthrough]];
    case GroupLayout::awq:
      names.codes = module + ".qweight";
      names.scale = module + ".scales";
      names.zero_points = module + ".qzeros";
      break;
    case GroupLayout::bitsandbytes:
      names.codes = module + ".weight";
      names.scale = module + ".weight.absmax";
      names.values = module + ".weight.quant_map";
      names.shape = module + ".weight.quant_state.bitsandbytes__nf4";
      if (!groups.has_quantized_scales) break;
      names.scales_of_scales = module + ".weight.nested_absmax";
      names.values_of_scales = module + ".weight.nested_quant_map";
      break;
  }
  return names;
}

bool is_named(std::string_view module, const IgnoredModules& ignored, bool by_part) {
  const std::string& name = ignored.name;
  if (by_part && fmt::format(".{}.", module).find("." + name + ".") != std::string::npos) return true;
  if (ignored.pattern == nullptr) return module == name || module.starts_with(name + ".");
  Regex::Scratch scratch;
  const auto match = ignored.pattern->find(module, 0, scratch);
  return match && match->begin == 0;
}

}  // namespace

bool QuantizationConfig::quantizes(std::string_view weight) const {
  if (scheme == QuantizationScheme::mxfp4)
    return weight.find(".experts.") != std::string_view::npos && !weight.ends_with("_bias");
  if (!weight.ends_with(kWeight)) return false;
  const std::string_view module = weight.substr(0, weight.size() - kWeight.size());
  const std::size_t dot = module.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? module : module.substr(dot + 1);
  if (last == "lm_head" || last == "embed_tokens" || last == "embed_tokens_per_layer") return false;
  // Coefficients of residual streams.
  if (last == "modality_router" || last == "prediction_coefs" || last == "correction_coefs") return false;
  // Routers, and the gate of a shared expert.
  if (last == "gate" || last == "router" || module.ends_with("router.layer") || last == "shared_expert_gate")
    return false;
  return std::none_of(ignored.begin(), ignored.end(),
                      [&](const IgnoredModules& one) { return is_named(module, one, ignores_by_part); });
}

std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config) {
  const auto fields = config.find_object("quantization_config");
  if (!fields) return std::nullopt;
  struct Method {
    std::string_view name;
    QuantizationConfig (*read)(const JsonFields& fields);
  };
  constexpr Method kMethods[] = {{"fp8", read_fp8},
                                 {"compressed-tensors", read_compressed_tensors},
                                 {"gptq", read_gptq},
                                 {"awq", read_awq},
                                 {"bitsandbytes", read_bitsandbytes},
                                 {"mxfp4", read_mxfp4}};
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  const std::string name = text_among(*fields, "quant_method", names);
  const auto* const method =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& one) { return one.name == name; });
  QuantizationConfig result = method->read(*fields);
  add_unknown_keys(KeyTable::quantization, config, "quantization_config", result);
  result.method = name;
  return result;
}

std::vector<std::string> QuantizedNames::all() const {
  std::vector<std::string> names;
  for (const std::string& name : {codes, scale, global_scale, input_scale, zero_points, groups, shape, values,
                                  scales_of_scales, values_of_scales})
    if (!name.empty()) names.push_back(name);
  return names;
}

QuantizedNames quantized_names(const QuantizationConfig& config, std::string_view weight) {
  if (config.scheme == QuantizationScheme::mxfp4)
    return {std::string(weight) + "_blocks", std::string(weight) + "_scales", "", ""};
  CHECK(weight.ends_with(kWeight), "a quantized weight is named {}", weight);
  const std::string module(weight.substr(0, weight.size() - kWeight.size()));
  using enum QuantizationScheme;
  if (config.scheme == grouped) return grouped_names(config.groups, module);
  QuantizedNames names;
  if (config.scheme == nvfp4) {
    names.codes = module + ".weight_packed";
    names.scale = module + ".weight_scale";
    names.global_scale = module + ".weight_global_scale";
    names.input_scale = module + ".input_global_scale";
    return names;
  }
  const bool is_inverse = config.scheme == block && config.method == "fp8";
  names.codes = module + ".weight";
  names.scale = module + (is_inverse ? ".weight_scale_inv" : ".weight_scale");
  if (config.static_input) names.input_scale = module + ".input_scale";
  return names;
}

}  // namespace weft
