// quantization_config of NVIDIA's ModelOpt, and its hf_quant_config.json, which has the same keys in an object
// "quantization" (vLLM: model_executor/layers/quantization/modelopt.py). Its tensors are those of the method fp8, or
// those of NVFP4 under other names.

#include "io/quantization_fields.h"
#include "tensor/quant_key.h"

namespace weft {

QuantizationConfig read_modelopt(const JsonFields& fields) {
  const auto inner = fields.find_object("quantization");
  const JsonFields& own = inner ? *inner : fields;
  QuantizationConfig config;
  config.static_input = true;
  if (text_among(own, "quant_algo", {"FP8", "NVFP4"}) == "NVFP4") {
    config.scheme = QuantizationScheme::nvfp4;
    config.codes = DType::f4e2m1;
    config.multiplies_globally = true;
    if (own.has("group_size")) need_integer(own, "group_size", kNvfp4Group);
  }
  for (const auto key : {"ignore", "exclude_modules"})
    for (const std::string& name : texts_of(own, key)) config.ignored.push_back(module_glob(name));
  warn_of_kv_scales(own, "kv_cache_quant_algo", config);
  add_unknown_keys(KeyTable::quantization, fields, "quantization", config);
  return config;
}

bool add_modelopt_config(std::string_view text, const std::string& where, const std::string& config_where,
                         std::string& config_text) {
  Json config = parse_config_json(config_text, config_where);
  for (const auto key : {"quantization_config", "compression_config"})
    if (config.contains(key) && !config[key].is_null()) return false;
  Json quantization = parse_config_json(text, where);
  quantization["quant_method"] = "modelopt";
  config["quantization_config"] = std::move(quantization);
  config_text = json_text(config);
  return true;
}

}  // namespace weft
