#include "io/config_defaults.h"

#include <utility>

#include "io/config_fields.h"
#include "io/text_config.h"

namespace weft {
namespace {

// The config with the architecture's values for keys that it omits. A null is not omitted, but in place of an object,
// as in transformers.
Json with_defaults(Json config, std::string_view text) {
  const Json defaults = parse_json(text);
  for (const auto& [key, value] : defaults.items()) {
    if (key == "rope_parameters" && config.contains("rope_scaling") && !config["rope_scaling"].is_null()) continue;
    if (!config.contains(key) || (value.is_object() && config[key].is_null())) config[key] = value;
  }
  return config;
}

}  // namespace

Json whole_config(std::string_view text, const std::string& where, const ArchitectureFacts& facts) {
  Json config = parse_config_json(text, where);
  const bool is_inner = JsonFields(config, where).has("text_config");
  Json own = text_config(std::move(config), where);
  for (const auto& [type, defaults] : facts.defaults_of_types)
    if (own.value("model_type", Json()) == type) own = with_defaults(std::move(own), defaults);
  own = with_defaults(std::move(own), facts.defaults);
  return is_inner ? with_defaults(std::move(own), facts.text_config_defaults) : own;
}

}  // namespace weft
