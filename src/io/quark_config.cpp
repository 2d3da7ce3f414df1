// quantization_config of AMD's Quark (vLLM: model_executor/layers/quantization/quark). global_quant_config has the
// scheme of all linear layers, layer_quant_config those of layers whose names match a pattern. Weights and inputs are
// in fp8 or int8; their tensors are those of the methods fp8 and int8 of compressed-tensors.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "io/quantization_fields.h"

namespace weft {
namespace {

constexpr std::string_view kFp8 = "fp8_e4m3", kInt8 = "int8";

bool has_dynamic_scales(const JsonFields& tensor) { return tensor.find_boolean("is_dynamic").value_or(false); }

void read_input(const JsonFields& input, std::string_view dtype, QuantizationConfig& config) {
  text_among(input, "dtype", {dtype});
  if (dtype == kInt8) need_symmetric(input);
  config.static_input = !has_dynamic_scales(input);
  const std::string scheme = text_among(input, "qscheme", {"per_tensor", "per_channel"});
  USER_CHECK(!config.static_input || scheme == "per_tensor",
             "[{}] {} must be per_tensor where scales of inputs are stored, but is {}", input.where(),
             input.name("qscheme"), scheme);
  if (config.static_input || scheme == "per_channel") return;
  config.warnings.push_back(
      fmt::format("[{}] {} is per_tensor, but each token gets a scale of its own, so that no token changes another",
                  input.where(), input.name("qscheme")));
}

QuantizationConfig read_scheme(const JsonFields& fields) {
  QuantizationConfig config;
  const JsonFields weight = needed_object(fields, "weight");
  const std::string dtype = text_among(weight, "dtype", {kFp8, kInt8});
  config.codes = dtype == kInt8 ? DType::i8 : DType::f8e4m3;
  if (dtype == kInt8) need_symmetric(weight);
  USER_CHECK(!has_dynamic_scales(weight), "[{}] {} must be false, but is true", weight.where(),
             weight.name("is_dynamic"));
  config.scale_per_row = text_among(weight, "qscheme", {"per_tensor", "per_channel"}) == "per_channel";
  const std::optional<JsonFields> input = fields.find_object("input_tensors");
  config.weights_only = !input;
  if (input) read_input(*input, dtype, config);
  for (const char* side : {"weight", "input_tensors"})
    add_unknown_keys(KeyTable::quantization_arguments, fields, side, config);
  return config;
}

// Outputs of layers are those of keys and values, which have the group's patterns as names.
void read_layers(const JsonFields& fields, QuantizationConfig& config) {
  const auto layers = fields.find_object("layer_quant_config");
  if (!layers) return;
  for (const auto& [pattern, value] : fields.value("layer_quant_config")->items()) {
    QuantizationConfig scheme = read_scheme(needed_object(*layers, pattern));
    for (std::string& key : std::exchange(scheme.unknown_keys, {})) config.unknown_keys.push_back(std::move(key));
    config.rules.push_back({module_glob(pattern), std::make_shared<const QuantizationConfig>(std::move(scheme))});
  }
  config.first_rule_decides = true;
}

}  // namespace

QuantizationConfig read_quark(const JsonFields& fields) {
  QuantizationConfig config = read_scheme(needed_object(fields, "global_quant_config"));
  for (const char* key : {"exclude", "ignored_layers"})
    for (const std::string& name : texts_of(fields, key)) config.ignored.push_back(module_glob(name));
  read_layers(fields, config);
  const auto files = fields.find_object("export");
  if (!files) return config;
  if (files->has("weight_format")) text_among(*files, "weight_format", {"real_quantized"});
  if (!texts_of(*files, "kv_cache_group").empty()) warn_of_kv_scales(*files, "kv_cache_group", config);
  return config;
}

}  // namespace weft
