#include "tests/grammar/small_validator.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/utf8.h"

namespace weft {
namespace {

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number() && value.get<double>() == std::trunc(value.get<double>());
  return value.is_number();
}

std::size_t characters_in(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

bool is_valid_string(const std::string& text, const Json& schema) {
  const std::size_t length = characters_in(text);
  if (schema.contains("minLength") && length < schema["minLength"].get<std::size_t>()) return false;
  if (schema.contains("maxLength") && length > schema["maxLength"].get<std::size_t>()) return false;
  return !schema.contains("pattern") || std::regex_search(text, std::regex(schema["pattern"].get<std::string>()));
}

bool is_multiple(const Json& value, const Json& schema) {
  if (!schema.contains("multipleOf")) return true;
  if (value.is_number_integer()) return value.get<std::int64_t>() % schema["multipleOf"].get<std::int64_t>() == 0;
  return std::fmod(value.get<double>(), schema["multipleOf"].get<double>()) == 0;
}

bool is_valid_number(const Json& value, const Json& schema) {
  const auto number = value.get<double>();
  const auto bound = [&](const char* name, double absent) { return schema.value(name, Json(absent)).get<double>(); };
  return number >= bound("minimum", -INFINITY) && number <= bound("maximum", INFINITY) &&
         number > bound("exclusiveMinimum", -INFINITY) && number < bound("exclusiveMaximum", INFINITY) &&
         is_multiple(value, schema);
}

bool is_valid_object(const Json& value, const Json& schema) {
  const Json required = schema.value("required", Json::array()),
             properties = schema.value("properties", Json::object());
  for (const Json& name : required)
    if (!value.contains(name.get<std::string>())) return false;
  const auto count = static_cast<std::size_t>(value.size());
  if (count < schema.value("minProperties", Json(0)).get<std::size_t>()) return false;
  if (count > schema.value("maxProperties", Json(1000)).get<std::size_t>()) return false;
  for (const auto& [name, member] : value.items()) {
    bool is_known = properties.contains(name);
    if (is_known && !is_valid(member, properties[name])) return false;
    const Json patterns = schema.value("patternProperties", Json::object());
    for (const auto& [pattern, wanted] : patterns.items()) {
      if (!std::regex_search(name, std::regex(pattern))) continue;
      is_known = true;
      if (!is_valid(member, wanted)) return false;
    }
    if (!is_known && !is_valid(member, schema.value("additionalProperties", Json(true)))) return false;
  }
  return true;
}

bool is_valid_array(const Json& value, const Json& schema) {
  if (value.size() < schema.value("minItems", Json(0)).get<std::size_t>()) return false;
  if (value.size() > schema.value("maxItems", Json(1000)).get<std::size_t>()) return false;
  const Json first = schema.value("prefixItems", Json::array()), others = schema.value("items", Json(true));
  for (std::size_t i = 0; i < value.size(); ++i)
    if (!is_valid(value[i], i < first.size() ? first[i] : others)) return false;
  return true;
}

}  // namespace

bool is_valid(const Json& value, const Json& schema) {
  if (schema.is_boolean()) return schema.get<bool>();
  const auto count = [&](const Json& schemas) {
    return std::count_if(schemas.begin(), schemas.end(), [&](const Json& one) { return is_valid(value, one); });
  };
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (std::none_of(types.begin(), types.end(), [&](const Json& type) { return is_of_type(value, type); }))
      return false;
  }
  if (schema.contains("const") && schema["const"] != value) return false;
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return false;
  if (schema.contains("anyOf") && count(schema["anyOf"]) == 0) return false;
  if (schema.contains("oneOf") && count(schema["oneOf"]) != 1) return false;
  if (schema.contains("allOf"))
    for (const Json& one : schema["allOf"])
      if (!is_valid(value, one)) return false;
  if (value.is_string()) return is_valid_string(value, schema);
  if (value.is_number()) return is_valid_number(value, schema);
  if (value.is_object()) return is_valid_object(value, schema);
  return !value.is_array() || is_valid_array(value, schema);
}

}  // namespace weft
