#include "io/quantization_config.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/mlx_stacks.h"
#include "io/quantization_fields.h"
#include "io/regex.h"
#include "io/text_config.h"

namespace weft {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kHead = "lm_head";

QuantizationConfig read_fp8(const JsonFields& fields) {
  QuantizationConfig config;
  if (fields.has("fmt")) text_among(fields, "fmt", {"e4m3", "float8_e4m3fn"});
  if (fields.has("scale_fmt")) config.powers_of_two = text_among(fields, "scale_fmt", {"float", "ue8m0"}) == "ue8m0";
  config.static_input =
      fields.has("activation_scheme") && text_among(fields, "activation_scheme", {"dynamic", "static"}) == "static";
  for (const auto key : {"modules_to_not_convert", "ignored_layers"}) add_ignored(texts_of(fields, key), config);
  if (fields.has("weight_block_size")) {
    read_block(fields, "weight_block_size", config);
    USER_CHECK(!config.static_input, "[{}] {} must be dynamic where weights have blocks, but is static", fields.where(),
               fields.name("activation_scheme"));
  }
  return config;
}

// A scale for each row of a weight and for each token.
QuantizationConfig read_fbgemm_fp8(const JsonFields& fields) {
  QuantizationConfig config;
  config.scale_per_row = true;
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  const std::optional<double> limit = fields.find_real("activation_scale_ub");
  if (limit)
    config.warnings.push_back(
        fmt::format("[{}] {} is not applied: inputs above {} get scales of their own and are not "
                    "limited",
                    fields.where(), fields.name("activation_scale_ub"), *limit));
  return config;
}

// Codes of -1, 0 and 1, and a scale for each token. Only autobitlinear has a mode: with `online` the folder has the
// numbers that training rounded in each step.
QuantizationConfig read_bitnet(const JsonFields& fields) {
  QuantizationConfig config;
  config.codes = DType::i8;
  const auto stated = [&](const char* key, std::vector<std::string_view> known) {
    return fields.has(key) ? text_among(fields, key, known) : std::string(known[0]);
  };
  config.divides_by_scale = stated("linear_class", {"bitlinear", "autobitlinear"}) == "bitlinear";
  const bool is_online = stated("quantization_mode", {"offline", "online"}) == "online";
  config.ternary = is_online && !config.divides_by_scale ? TernaryForm::rounded : TernaryForm::packed;
  USER_CHECK(!fields.find_boolean("use_rms_norm").value_or(false),
             "[{}] {} must be false: norms of their own before linear layers are not supported", fields.where(),
             fields.name("use_rms_norm"));
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  return config;
}

// The experts alone are quantized.
QuantizationConfig read_mxfp4(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::mxfp4;
  config.codes = DType::f4e2m1;
  add_ignored(texts_of(fields, "modules_to_not_convert"), config);
  for (const ModulePattern& module : config.ignored)
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
      names.zero_points = module + ".weight_zero_point";
      names.groups = module + ".weight_g_idx";
      break;
    case GroupLayout::gptq:
      names.groups = module + ".g_idx";
      [[fallthrough]];
    case GroupLayout::awq:
      names.codes = module + ".qweight";
      names.scale = module + ".scales";
      names.zero_points = module + ".qzeros";
      break;
    case GroupLayout::bitsandbytes: {
      names.codes = module + ".weight";
      if (groups.bits == 8) {
        names.scale = module + ".SCB";
        names.shape = module + ".weight_format";
        break;
      }
      names.scale = module + ".weight.absmax";
      names.values = module + ".weight.quant_map";
      const std::string state = module + ".weight.quant_state.bitsandbytes__";
      const bool is_nf4 = groups.values == CodeValues::nf4;
      names.shape = state + (is_nf4 ? "nf4" : "fp4");
      names.other_shape = state + (is_nf4 ? "fp4" : "nf4");
      if (!groups.has_quantized_scales) break;
      names.scales_of_scales = module + ".weight.nested_absmax";
      names.values_of_scales = module + ".weight.nested_quant_map";
      break;
    }
    case GroupLayout::mlx:
      names.codes = module + ".weight";
      names.scale = module + ".scales";
      if (groups.values == CodeValues::integers) names.minimums = module + ".biases";
      break;
  }
  return names;
}

bool ends_part(std::string_view module, std::size_t at) { return at == module.size() || module[at] == '.'; }

bool has_parts(std::string_view module, std::string_view parts) {
  for (std::size_t at = module.find(parts); at != std::string_view::npos; at = module.find(parts, at + 1))
    if ((at == 0 || module[at - 1] == '.') && ends_part(module, at + parts.size())) return true;
  return false;
}

bool is_matched(std::string_view module, const Regex& pattern) {
  Regex::Scratch scratch;
  const auto match = pattern.find(module, 0, scratch);
  return match && match->begin == 0;
}

bool is_matched(std::string_view module, const ModulePattern& modules) {
  using enum ModulePattern::Names;
  const bool is_own = modules.names == own || (modules.names == outer_or_head && module == kHead);
  if (is_own && is_matched(module, *modules.pattern)) return true;
  if (modules.names == own) return false;
  std::vector<std::string> names = names_in_checkpoint(std::string(module) + ".");
  return std::any_of(names.begin(), names.end(), [&](std::string& name) {
    name.pop_back();
    return is_matched(name, *modules.pattern);
  });
}

// Whether the text is in the name and ends with a part of it. AutoAWQ and vLLM compare texts. The end counts, because
// published lists have mlp.gate next to a quantized mlp.gate_proj, and transformers tells these apart, too.
bool has_text(std::string_view module, std::string_view text) {
  for (std::size_t at = module.find(text); at != std::string_view::npos; at = module.find(text, at + 1))
    if (text.ends_with('.') || ends_part(module, at + text.size())) return true;
  return false;
}

bool is_ignored(std::string_view module, const ModulePattern& ignored, const QuantizationConfig& config) {
  if (config.ignores_by_part && has_parts(module, ignored.name)) return true;
  if (config.ignores_by_text && has_text(module, ignored.name)) return true;
  if (ignored.pattern == nullptr) return module.starts_with(ignored.name) && ends_part(module, ignored.name.size());
  return is_matched(module, ignored);
}

bool has_rule(std::string_view module, const QuantizationRule& rule) {
  const ModulePattern& modules = rule.modules;
  return modules.pattern == nullptr ? module == modules.name : is_matched(module, modules);
}

// The rule of the module; null if there is none.
const QuantizationRule* rule_of(const QuantizationConfig& config, std::string_view module) {
  const QuantizationRule* found = nullptr;
  for (const QuantizationRule& rule : config.rules) {
    if (!has_rule(module, rule)) continue;
    if (config.first_rule_decides) return &rule;
    USER_CHECK(found == nullptr || found->config == rule.config,
               "[quantization_config] two groups of config_groups have {}: by their targets {} and {}", module,
               quote(found->modules.name), quote(rule.modules.name));
    found = &rule;
  }
  return found;
}

// Whether the module is a linear layer that methods quantize, other than the head.
bool may_be_quantized(std::string_view module) {
  const std::size_t dot = module.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? module : module.substr(dot + 1);
  if (last.ends_with("norm")) return false;  // some have a weight for each head
  // Tables next to that of the embedding.
  for (const char* table : {"embed_tokens_per_layer", "embed_positions", "wpe", "position_embeddings",
                            "token_type_embeddings", "relative_attention_bias"})
    if (last == table) return false;
  // Coefficients of residual streams.
  if (last == "modality_router" || last == "prediction_coefs" || last == "correction_coefs") return false;
  // Routers, and the gate of a shared expert.
  for (const std::string_view router : {"router.layer", "router.proj", "gate.wg"})
    if (module.ends_with(router)) return false;
  return last != "gate" && last != "router" && last != "shared_expert_gate";
}

}  // namespace

const QuantizationConfig* QuantizationConfig::of(std::string_view weight) const {
  if (scheme == QuantizationScheme::mxfp4) {
    const bool is_of_experts = weight.find(".experts.") != std::string_view::npos && !weight.ends_with("_bias");
    return is_of_experts && covers_rest ? this : nullptr;
  }
  if (!weight.ends_with(kWeight)) return nullptr;
  const std::string_view module = weight.substr(0, weight.size() - kWeight.size());
  const bool is_head = module == kHead;
  const bool may_be = reaches_embeddings || (weight != embedding && may_be_quantized(module));
  if (is_head ? !has_quantized_head : !may_be) return nullptr;
  if (std::any_of(ignored.begin(), ignored.end(),
                  [&](const ModulePattern& one) { return is_ignored(module, one, *this); }))
    return nullptr;
  if (const auto own = by_name.find(module); own != by_name.end()) return own->second.get();
  if (groups.layout == GroupLayout::mlx && covers_rest)
    if (const auto own = by_name.find(parts_with(module)); own != by_name.end()) return own->second.get();
  if (!is_head && !only.empty() &&
      std::none_of(only.begin(), only.end(), [&](const ModulePattern& one) { return has_parts(module, one.name); }))
    return nullptr;
  if (const QuantizationRule* rule = rule_of(*this, module)) return rule->config.get();
  return covers_rest ? this : nullptr;
}

namespace {

// Early writers of two methods leave out quant_method.
std::string method_without_name(const JsonFields& fields, const std::vector<std::string_view>& names) {
  for (const char* key : {"load_in_4bit", "load_in_8bit"})
    if (fields.find_boolean(key).value_or(false)) return "bitsandbytes";
  const auto producer = fields.find_object("producer");
  if (producer && producer->find_text("name") == "modelopt") return "modelopt";
  return text_among(fields, "quant_method", names);
}

// Whether the names in the checkpoint have a module around the language model, as those of models that take images or
// sound. Early models of Qwen have such inputs, too, but no such module.
bool has_outer_module(const JsonFields& config) {
  const auto* classes = config.value("architectures");
  if (classes == nullptr || !classes->is_array()) return false;
  return std::any_of(classes->begin(), classes->end(), [](const auto& one) {
    const std::string name = one.is_string() ? one.template get<std::string>() : "";
    return name.ends_with("ForConditionalGeneration") && !name.starts_with("Qwen2");
  });
}

// Writers matched their patterns with the names of the whole model.
void match_outer_names(QuantizationConfig& config) {
  using enum ModulePattern::Names;
  const auto change = [](ModulePattern& modules) {
    if (modules.pattern != nullptr && modules.names == own) modules.names = outer_or_head;
  };
  for (ModulePattern& modules : config.ignored) change(modules);
  for (QuantizationRule& rule : config.rules) change(rule.modules);
}

}  // namespace

std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config) {
  if (const auto mlx = mlx_quantization(config)) return read_mlx(*mlx);
  // Early folders of compressed-tensors have the other key.
  const char* key = config.has("quantization_config") ? "quantization_config" : "compression_config";
  const auto fields = config.find_object(key);
  if (!fields) return std::nullopt;
  struct Method {
    std::string_view name;
    QuantizationConfig (*read)(const JsonFields& fields);
  };
  constexpr Method kMethods[] = {{"fp8", read_fp8},
                                 {"compressed-tensors", read_compressed_tensors},
                                 {"gptq", read_gptq},
                                 {"awq", read_awq},
                                 {"auto-round", read_auto_round},
                                 {"bitsandbytes", read_bitsandbytes},
                                 {"bitnet", read_bitnet},
                                 {"modelopt", read_modelopt},
                                 {"modelopt_fp4", read_modelopt},
                                 {"quark", read_quark},
                                 {"fbgemm_fp8", read_fbgemm_fp8},
                                 {"mxfp4", read_mxfp4}};
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  const std::string name =
      fields->has("quant_method") ? text_among(*fields, "quant_method", names) : method_without_name(*fields, names);
  const auto* const method =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& one) { return one.name == name; });
  QuantizationConfig result = method->read(*fields);
  if (has_outer_module(config)) match_outer_names(result);
  add_unknown_keys(KeyTable::quantization, config, key, result);
  warn_of_kv_scales(*fields, "kv_cache_scheme", result);
  result.method = name;
  return result;
}

namespace {

void keep_modules_with_scales(const std::vector<std::string>& names, QuantizationConfig& config) {
  constexpr std::string_view kScales = ".scales";
  const auto stated = std::exchange(config.by_name, {});
  const auto rest = std::make_shared<const QuantizationConfig>(config);
  for (const std::string& name : names) {
    if (!name.ends_with(kScales)) continue;
    const std::string module = name.substr(0, name.size() - kScales.size());
    auto own = stated.find(module);
    if (own == stated.end()) own = stated.find(parts_with(module));
    config.by_name.emplace(module, own == stated.end() ? rest : own->second);
  }
  config.covers_rest = false;
}

}  // namespace

void find_quantized_modules(const std::function<bool(const std::string& name)>& has_tensor,
                            const std::vector<std::string>& names, QuantizationConfig& config) {
  if (config.groups.layout == GroupLayout::mlx) {
    config.has_quantized_head = true;  // as any other module, also if there are no tensors
    if (!names.empty()) keep_modules_with_scales(names, config);
  }
  if (config.has_quantized_head) return;
  if (config.scheme == QuantizationScheme::mxfp4) {
    // A program that dequantized the experts and saved them may leave the quantization_config in the folder.
    config.covers_rest = !has_tensor("model.layers.0.mlp.experts.gate_up_proj");
    return;
  }
  const std::string weight = std::string(kHead) + std::string(kWeight);
  config.has_quantized_head = true;
  const QuantizationConfig* head = config.of(weight);
  config.has_quantized_head = head != nullptr && has_tensor(quantized_names(*head, weight).scale);
}

std::vector<std::string> QuantizedNames::all() const {
  std::vector<std::string> names;
  for (const std::string& name : {codes, scale, global_scale, input_scale, zero_points, minimums, groups, shape,
                                  other_shape, values, scales_of_scales, values_of_scales})
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
    const bool multiplies = config.multiplies_globally;
    names.codes = module + (multiplies ? ".weight" : ".weight_packed");
    names.scale = module + ".weight_scale";
    names.global_scale = module + (multiplies ? ".weight_scale_2" : ".weight_global_scale");
    if (config.static_input) names.input_scale = module + (multiplies ? ".input_scale" : ".input_global_scale");
    return names;
  }
  const bool is_inverse = config.scheme == block && config.method == "fp8";
  names.codes = module + ".weight";
  names.scale = module + (is_inverse ? ".weight_scale_inv" : ".weight_scale");
  if (config.static_input) names.input_scale = module + ".input_scale";
  // The configs of rules have no name of a method.
  const bool may_have_zero_points = config.method.empty() || config.method == "compressed-tensors";
  if (may_have_zero_points) names.zero_points = module + ".weight_zero_point";
  return names;
}

}  // namespace weft
