#include "tests/grammar/document_generator.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace weft {
namespace {

std::size_t below(std::size_t count, std::mt19937& random) { return random() % count; }

const Json& one_of(const Json& list, std::mt19937& random) { return list[below(list.size(), random)]; }

std::size_t drawn_count(const Json& schema, const char* least, const char* most, std::mt19937& random) {
  const auto first = schema.value(least, Json(0)).get<std::size_t>();
  return std::min(first + below(4, random), schema.value(most, Json(1000)).get<std::size_t>());
}

// Both schemas as one, as far as the tests' schemas go.
Json merged(Json a, const Json& b) {
  for (const auto& [key, value] : b.items()) {
    if (key == "properties" && a.contains(key)) {
      for (const auto& [name, of] : value.items()) a[key][name] = merged(a[key].value(name, Json::object()), of);
    } else if (key == "required" && a.contains(key)) {
      for (const Json& name : value) a[key].push_back(name);
    } else {
      a[key] = value;
    }
  }
  return a;
}

std::string drawn_type(const Json& schema, std::mt19937& random) {
  if (schema.contains("type")) return schema["type"].is_array() ? one_of(schema["type"], random) : schema["type"];
  for (const auto& [key, type] : std::vector<std::pair<const char*, const char*>>{{"properties", "object"},
                                                                                  {"additionalProperties", "object"},
                                                                                  {"prefixItems", "array"},
                                                                                  {"items", "array"},
                                                                                  {"pattern", "string"}})
    if (schema.contains(key)) return type;
  static const Json kTypes = {"object", "array", "string", "integer", "number", "boolean", "null"};
  return one_of(kTypes, random);
}

Json drawn_string(const Json& schema, std::mt19937& random) {
  static const Json kCharacters = {"a",  "b", "1", "-", " ",  "\"", "\\",     "\n",
                                   "\t", "/", "é", "ß", "中", "😀",  "\u001f", "x"};
  std::string text;
  for (std::size_t left = drawn_count(schema, "minLength", "maxLength", random); left > 0; --left)
    text += one_of(kCharacters, random).get<std::string>();
  return text;
}

Json drawn_number(const Json& schema, bool is_whole, std::mt19937& random) {
  const double low = schema.value("minimum", schema.value("exclusiveMinimum", Json(-50))).get<double>();
  const double high = schema.value("maximum", schema.value("exclusiveMaximum", Json(low + 100))).get<double>();
  const double drawn = low + (high - low) * static_cast<double>(below(101, random)) / 100;
  if (is_whole) return static_cast<std::int64_t>(std::floor(drawn));
  return std::round(drawn * 100) / 100;
}

Json drawn_object(const Json& schema, std::mt19937& random) {
  Json object = Json::object();
  const Json required = schema.value("required", Json::array());
  const auto is_required = [&](const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, value] : properties.items())
    if (is_required(name) || below(2, random) == 0) object[name] = drawn_document(value, random);
  const Json others = schema.value("additionalProperties", Json(true));
  for (const Json& name : required)
    if (!object.contains(name.get<std::string>())) object[name.get<std::string>()] = drawn_document(others, random);
  const Json patterns = schema.value("patternProperties", Json::object());
  if (others == false && patterns.empty()) return object;
  static const Json kNames = {"x-a", "b5", "other", "é", "a\"b", "", "zz"};
  for (std::size_t left = below(3, random); left > 0; --left) {
    const std::string name = one_of(kNames, random);
    if (!properties.contains(name) && !is_required(name))
      object[name] = drawn_document(patterns.empty() ? others : patterns.begin().value(), random);
  }
  return object;
}

Json drawn_array(const Json& schema, std::mt19937& random) {
  const Json first = schema.value("prefixItems", Json::array()), others = schema.value("items", Json(true));
  Json array = Json::array();
  for (std::size_t left = drawn_count(schema, "minItems", "maxItems", random); left > 0; --left)
    array.push_back(drawn_document(array.size() < first.size() ? first[array.size()] : others, random));
  return array;
}

}  // namespace

Json drawn_document(const Json& schema, std::mt19937& random) {
  if (schema.is_boolean()) return static_cast<std::int64_t>(below(100, random));
  if (schema.contains("const")) return schema["const"];
  if (schema.contains("enum")) return one_of(schema["enum"], random);
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    if (!schema.contains(key)) continue;
    Json rest = schema;
    rest.erase(key);
    if (std::string(key) != "allOf") return drawn_document(merged(rest, one_of(schema[key], random)), random);
    for (const Json& part : schema[key]) rest = merged(rest, part);
    return drawn_document(rest, random);
  }
  const std::string type = drawn_type(schema, random);
  if (type == "object") return drawn_object(schema, random);
  if (type == "array") return drawn_array(schema, random);
  if (type == "string") return drawn_string(schema, random);
  if (type == "boolean") return below(2, random) == 0;
  if (type == "null") return nullptr;
  return drawn_number(schema, type == "integer", random);
}

}  // namespace weft
