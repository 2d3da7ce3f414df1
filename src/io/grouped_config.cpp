// quantization_config of gptq, awq, auto-round and bitsandbytes.

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/quantization_fields.h"

namespace weft {
namespace {

int read_bits(const JsonFields& fields) {
  const std::int64_t bits = needed_integer_in(fields, "bits", {1, 64});
  USER_CHECK(bits == 2 || bits == 3 || bits == 4 || bits == 8, "[{}] {} must be 2, 3, 4 or 8, but is {}",
             fields.where(), fields.name("bits"), bits);
  return static_cast<int>(bits);
}

// Module names, in lists of lists, or in a text with commas.
void add_modules(const JsonFields& fields, std::string_view key, const Json& list, QuantizationConfig& config) {
  USER_CHECK(list.is_array() || list.is_string(), "[{}] {} must be lists of names, but has {}", fields.where(),
             fields.name(key), shown_json(list));
  if (list.is_string()) {
    for (const std::string& name : split_text(list.get<std::string>(), ','))
      config.only.push_back(module_pattern(name));
    return;
  }
  for (const Json& one : list) add_modules(fields, key, one, config);
}

// What a rule of `dynamic`, or of auto-round's `extra_config`, changes for its modules.
QuantizationConfig changed_by_rule(const JsonFields& rule, const QuantizationConfig& all, bool desc_act) {
  QuantizationConfig config = all;
  config.rules.clear();
  config.by_name.clear();
  GroupedCodes& groups = config.groups;
  if (rule.has("bits")) groups.bits = read_bits(rule);
  if (rule.has("group_size")) groups.group_size = read_group_size(rule, "group_size");
  groups.is_symmetric = rule.find_boolean("sym").value_or(groups.is_symmetric);
  groups.is_reordered = rule.find_boolean("desc_act").value_or(desc_act) && groups.group_size > 0;
  return config;
}

// The first rule whose pattern matches a module decides: after "-:" the module is plain; after "+:", or neither, its
// config has what the rule states.
void read_rules(const JsonFields& fields, bool desc_act, QuantizationConfig& config) {
  constexpr std::string_view kPlain = "-:", kChanged = "+:";
  const auto rules = fields.find_object("dynamic");
  if (!rules) return;
  config.first_rule_decides = true;
  for (const auto& [text, changes] : fields.value("dynamic")->items()) {
    const bool has_sign = text.starts_with(kPlain) || text.starts_with(kChanged);
    QuantizationRule rule{module_pattern("re:" + text.substr(has_sign ? kPlain.size() : 0)), nullptr};
    if (!text.starts_with(kPlain)) {
      add_unknown_keys(KeyTable::quantization_rule, *rules, text, config);
      QuantizationConfig changed = changed_by_rule(needed_object(*rules, text), config, desc_act);
      rule.config = std::make_shared<const QuantizationConfig>(std::move(changed));
    }
    config.rules.push_back(std::move(rule));
  }
}

// A key of `extra_config` is the name of a module, or a pattern that is anywhere in the name, if it has a character
// that only a pattern has.
void add_extra_config(const JsonFields& fields, QuantizationConfig& config) {
  constexpr std::int64_t kPlainBits = 16;  // that many or more: the module is not quantized
  const auto extra = fields.find_object("extra_config");
  if (!extra) return;
  config.first_rule_decides = true;
  const QuantizationConfig all = config;
  for (const auto& [key, ignored] : fields.value("extra_config")->items()) {
    add_unknown_keys(KeyTable::quantization_rule, *extra, key, config);
    const JsonFields rule = needed_object(*extra, key);
    std::shared_ptr<const QuantizationConfig> own;
    if (rule.find_integer("bits").value_or(all.groups.bits) < kPlainBits) {
      if (rule.has("data_type")) text_among(rule, "data_type", {"int"});
      own = std::make_shared<const QuantizationConfig>(changed_by_rule(rule, all, false));
    }
    if (key.find_first_of("*+?^$()[]{}|\\") == std::string::npos) {
      config.by_name.emplace(module_pattern(key).name, std::move(own));
    } else {
      config.rules.push_back({module_pattern("re:.*(?:" + key + ")"), std::move(own)});
    }
  }
}

// GPTQModel writes both keys and reads `format`. Other writers have one of them, or none.
bool stores_zeros_less_one(const JsonFields& fields) {
  std::string first_key, first = "gptq";
  for (const char* key : {"checkpoint_format", "format"}) {
    if (!fields.has(key)) continue;
    const std::string format = text_among(fields, key, {"gptq", "gptq_v2"});
    USER_CHECK(first_key.empty() || format == first, "[{}] {} and {} must agree, but are {} and {}", fields.where(),
               first_key, fields.name(key), first, format);
    first_key = fields.name(key);
    first = format;
  }
  return first == "gptq";
}

// Whether meta.quantizer, "NAME:VERSION" or a list of these, names the program.
bool is_quantized_by(const JsonFields& fields, std::string_view program) {
  const auto meta = fields.find_object("meta");
  const auto* value = meta ? meta->value("quantizer") : nullptr;
  if (value == nullptr) return false;
  const auto is_named = [&](const Json& one) {
    if (!one.is_string()) return false;
    const std::string text = one.get<std::string>();
    return std::string_view(text).substr(0, text.find(':')) == program;
  };
  return value->is_array() ? std::any_of(value->begin(), value->end(), is_named) : is_named(*value);
}

}  // namespace

QuantizationConfig read_gptq(const JsonFields& fields) {
  constexpr std::string_view kModules = "modules_in_block_to_quantize";
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  GroupedCodes& groups = config.groups;
  groups.layout = GroupLayout::gptq;
  groups.bits = read_bits(fields);
  groups.group_size = read_group_size(fields, "group_size");
  groups.has_zero_points = true;  // stored even if they are all alike
  groups.is_symmetric = fields.find_boolean("sym").value_or(true);
  groups.zeros_less_one = stores_zeros_less_one(fields);
  groups.zeros_borrow = groups.zeros_less_one && is_quantized_by(fields, "gptqmodel");
  const bool desc_act = needed_boolean(fields, "desc_act");
  groups.is_reordered = desc_act && groups.group_size > 0;
  config.has_quantized_head = fields.find_boolean("lm_head").value_or(false);
  if (const auto* modules = fields.value(kModules)) add_modules(fields, kModules, *modules, config);
  read_rules(fields, desc_act, config);
  return config;
}

QuantizationConfig read_awq(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  config.groups.layout = GroupLayout::awq;
  need_integer(fields, "bits", 4);
  config.groups.group_size = read_group_size(fields, "group_size");
  needed_boolean(fields, "zero_point");  // the files have zero points in either case
  if (fields.has("version")) text_among(fields, "version", {"gemm", "GEMM"});
  config.groups.has_zero_points = true;
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  config.ignores_by_text = true;
  return config;
}

// The weights have the tensors of GPTQ, of its first version, or of AWQ.
QuantizationConfig read_auto_round(const JsonFields& fields) {
  constexpr std::string_view kGptq = "auto_round:auto_gptq", kAwq = "auto_round:auto_awq";
  const bool is_awq = fields.has("packing_format") && text_among(fields, "packing_format", {kGptq, kAwq}) == kAwq;
  if (fields.has("data_type")) text_among(fields, "data_type", {"int"});
  if (is_awq) need_integer(fields, "bits", 4);
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  GroupedCodes& groups = config.groups;
  groups.layout = is_awq ? GroupLayout::awq : GroupLayout::gptq;
  groups.bits = read_bits(fields);
  groups.group_size = read_group_size(fields, "group_size");
  groups.has_zero_points = true;  // stored even if they are all alike
  groups.is_symmetric = needed_boolean(fields, "sym") && !is_awq;
  groups.zeros_less_one = !is_awq;
  for (const char* key : {"block_name_to_quantize", "to_quant_block_names"})
    if (const auto* blocks = fields.value(key)) add_modules(fields, key, *blocks, config);
  add_extra_config(fields, config);
  return config;
}

QuantizationConfig read_bitsandbytes(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  GroupedCodes& groups = config.groups;
  groups.layout = GroupLayout::bitsandbytes;
  const bool has_bytes = fields.find_boolean("load_in_8bit").value_or(false);
  const bool has_nibbles = fields.find_boolean("load_in_4bit").value_or(false);
  USER_CHECK(has_bytes != has_nibbles, "[{}] one of {} and {} must be true, but {}", fields.where(),
             fields.name("load_in_4bit"), fields.name("load_in_8bit"), has_bytes ? "both are" : "neither is");
  if (has_bytes) {
    groups.bits = 8;
    groups.is_symmetric = true;
  } else {
    constexpr std::string_view kType = "bnb_4bit_quant_type", kStorage = "bnb_4bit_quant_storage";
    const bool is_nf4 = fields.has(kType) && text_among(fields, kType, {"nf4", "fp4"}) == "nf4";
    groups.values = is_nf4 ? CodeValues::nf4 : CodeValues::fp4;
    // Codes are read by their bytes, so the tensors that have the bytes may be of any of these types.
    if (fields.has(kStorage)) text_among(fields, kStorage, {"uint8", "int8", "float16", "bfloat16", "float32"});
    groups.has_quantized_scales = fields.find_boolean("bnb_4bit_use_double_quant").value_or(false);
  }
  add_ignored(texts_of(fields, "llm_int8_skip_modules"), config);
  config.ignores_by_part = true;
  return config;
}

}  // namespace weft
