#include "tests/engine/model_forms.h"

#include <set>

#include "builtin/models.h"
#include "quantize/number_format.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr NumberFormat kFormats[] = {NumberFormat::fp8, NumberFormat::fp8_per_token, NumberFormat::fp8_block,
                                     NumberFormat::int8, NumberFormat::nvfp4};

json quantized(NumberFormat format, bool has_static_input) {
  const auto written = quantization_json(format, {32, 32}, has_static_input, {"lm_head"});
  return {{"quantization_config", json::parse(written.dump())}};
}

json calibrated_int8() {
  json config = quantized(NumberFormat::int8, false);
  config.at("/quantization_config/config_groups/group_0/input_activations"_json_pointer)
      .update({{"dynamic", false}, {"strategy", "tensor"}});
  return config;
}

}  // namespace

std::vector<ModelForm> model_forms(const TemporaryFolder& folder, const json& changes) {
  const ModelRegistry models = make_model_registry();
  std::vector<ModelForm> forms;
  for (const std::string& architecture : models.architectures()) {
    const auto add_config = [&](const std::string& form, const std::string& dtype, const json& more) {
      json all = changes;
      all.update(more);
      Options options;
      options.load_format = "dummy";
      options.dtype = dtype;
      forms.push_back({architecture, form, write_config_only(folder, architecture, all), options});
    };
    for (const char* dtype : {"f32", "bf16"}) add_config(dtype, dtype, json::object());
    for (const NumberFormat format : kFormats)
      add_config(std::string(number_format_text(format)), "bf16", quantized(format, false));
    add_config("calibrated fp8", "bf16", quantized(NumberFormat::fp8, true));
    add_config("calibrated int8", "bf16", calibrated_int8());
    for (const DType dtype : {DType::q4_1, DType::q8_0}) {
      const std::string form(dtype_text(dtype));
      const SampleCheckpoint sample(models.find(architecture, "test"), changes);
      forms.push_back({architecture, form, sample.write_gguf(folder, architecture + "-" + form + ".gguf", dtype), {}});
    }
  }
  return forms;
}

std::vector<ModelForm> sample_forms(const TemporaryFolder& folder, const json& changes) {
  std::vector<ModelForm> forms = model_forms(folder, changes);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::set<std::string> of_others{"f32"};
#else
  const std::set<std::string> of_others{"f32", "fp8", "q4_1"};
#endif
  std::erase_if(forms,
                [&](const ModelForm& form) { return form.architecture != "llama" && !of_others.contains(form.form); });
  return forms;
}

}  // namespace weft
