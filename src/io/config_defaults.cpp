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

// The keys of an object in the config are moved next to it.
Json without_inner_object(Json config, std::string_view key) {
  const auto found = config.find(std::string(key));
  if (key.empty() || found == config.end() || !found->is_object()) return config;
  const Json inner = std::move(*found);
  config.erase(found);
  for (const auto& [name, value] : inner.items())
    if (!config.contains(name)) config[name] = value;
  return config;
}

}  // namespace

Json whole_config(std::string_view text, const std::string& where, const ArchitectureFacts& facts) {
  Json config = parse_config_json(text, where);
  const bool is_inner = JsonFields(config, where).has("text_config");
  Json own = without_inner_object(text_config(std::move(config), where), facts.inner_object);
  for (const auto& [type, defaults] : facts.defaults_of_types)
    if (own.value("model_type", Json()) == type) own = with_defaults(std::move(own), defaults);
  own = with_defaults(std::move(own), facts.defaults);
  return is_inner ? with_defaults(std::move(own), facts.text_config_defaults) : own;
}

}  // namespace weft
