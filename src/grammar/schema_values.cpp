// Whether a value that "enum" or "const" lists follows the other keywords.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"
#include "grammar/json_formats.h"
#include "grammar/json_number.h"
#include "grammar/regex.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_reader.h"

namespace weft::grammar {
namespace {

constexpr int kDeepestCheck = 200;  // of values in each other, and of schemas for each

int characters_in(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_utf8_continuation(byte); }));
}

bool is_count_within(const Json& schema, const char* least, const char* most, std::size_t count) {
  return count >= static_cast<std::size_t>(count_of(schema, least, 0)) &&
         (!schema.contains(most) || count <= static_cast<std::size_t>(count_of(schema, most, 0)));
}

bool is_number_within(const Json& value, const Json& schema) {
  const Decimal number = Decimal::from_text(json_text(value));
  const auto bound = [&](const char* name) { return Decimal::from_text(json_text(schema[name])); };
  if (schema.contains("minimum") && number < bound("minimum")) return false;
  if (schema.contains("maximum") && number > bound("maximum")) return false;
  if (schema.contains("exclusiveMinimum") && number <= bound("exclusiveMinimum")) return false;
  if (schema.contains("exclusiveMaximum") && number >= bound("exclusiveMaximum")) return false;
  if (!schema.contains("multipleOf")) return true;
  const Json& factor = schema["multipleOf"];
  if (value.is_number_integer() && factor.is_number_integer() && factor > 0)
    return value.is_number_unsigned() ? value.get<std::uint64_t>() % factor.get<std::uint64_t>() == 0
                                      : value.get<std::int64_t>() % factor.get<std::int64_t>() == 0;
  const double quotient = value.get<double>() / factor.get<double>();
  return quotient == std::trunc(quotient);
}

bool accepts_text(const Automaton& automaton, std::string_view text) {
  int state = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const auto& edges = automaton[static_cast<std::size_t>(state)].bytes;
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const ByteEdge& one) { return byte <= one.last; });
    if (edge == edges.end() || byte < edge->first) return false;
    state = edge->target;
  }
  return automaton[static_cast<std::size_t>(state)].accepts;
}

}  // namespace

bool SchemaReader::matches_pattern(const std::string& text, const std::string& pattern, bool is_format,
                                   const std::string& path) {
  const auto [known, is_new] = automata_.try_emplace((is_format ? "format " : "pattern ") + pattern);
  if (is_new) {
    // They report what is not supported.
    if (is_format) format_of(pattern, path);
    if (!is_format) pattern_of(pattern, path);
    known->second = automaton_of(is_format ? read_regex(*format_pattern(pattern)) : read_search_regex(pattern), path,
                                 is_format ? "format" : "pattern");
  }
  return accepts_text(known->second, text);
}

bool SchemaReader::follows(const Json& value, const Json& schema, const std::string& path) {
  budget_.check_time();
  if (schema.is_boolean()) return schema == true;
  if (!schema.is_object()) fail_schema(path, "a schema must be an object, true or false");
  if (++depth_ > kDeepestCheck) fail_schema(path, "enum and const have values that are nested too deep for it");
  check_keywords(schema, path);
  const bool follows = follows_schemas(value, schema, path) && follows_type(value, schema, path);
  --depth_;
  return follows;
}

bool SchemaReader::follows_schemas(const Json& value, const Json& schema, const std::string& path) {
  if (schema.contains("$ref") && !follows(value, target_of(schema["$ref"].get<std::string>(), path), path))
    return false;
  const auto count = [&](const char* name) {
    return std::count_if(schema[name].begin(), schema[name].end(),
                         [&](const Json& one) { return follows(value, one, fmt::format("{}/{}", path, name)); });
  };
  if (schema.contains("allOf") && count("allOf") != std::ssize(schema["allOf"])) return false;
  if (schema.contains("anyOf") && count("anyOf") == 0) return false;
  return !schema.contains("oneOf") || count("oneOf") == 1;
}

bool SchemaReader::follows_type(const Json& value, const Json& schema, const std::string& path) {
  Json listed = Json::object();
  for (const char* name : {"type", "nullable", "const"})
    if (schema.contains(name)) listed[name] = schema[name];
  if (listed.contains("const") && listed["const"] != value) return false;
  listed["const"] = value;
  if (types_of(listed, path) == 0) return false;
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return false;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto count = static_cast<std::size_t>(characters_in(text));
    if (!is_count_within(schema, "minLength", "maxLength", count)) return false;
    if (schema.contains("pattern") && !matches_pattern(text, schema["pattern"], false, path)) return false;
    if (!schema.contains("format")) return true;
    const auto longest = longest_of_format(schema["format"].get<std::string>());
    return (!longest || count <= static_cast<std::size_t>(*longest)) &&
           matches_pattern(text, schema["format"], true, path);
  }
  if (value.is_number()) return is_number_within(value, schema);
  if (value.is_array()) return follows_items(value, schema, path);
  return !value.is_object() || follows_members(value, schema, path);
}

bool SchemaReader::follows_items(const Json& value, const Json& schema, const std::string& path) {
  if (!is_count_within(schema, "minItems", "maxItems", value.size())) return false;
  const bool is_list = schema.contains("items") && schema["items"].is_array();  // draft 7
  const char* const first_name = is_list ? "items" : "prefixItems";
  const char* const other_name = is_list ? "additionalItems" : "items";
  const Json first = schema.value(first_name, Json::array()), others = schema.value(other_name, Json(true));
  for (std::size_t i = 0; i < value.size(); ++i)
    if (!follows(value[i], i < first.size() ? first[i] : others, fmt::format("{}/{}", path, other_name))) return false;
  return true;
}

bool SchemaReader::follows_members(const Json& value, const Json& schema, const std::string& path) {
  if (!is_count_within(schema, "minProperties", "maxProperties", value.size())) return false;
  if (schema.contains("required"))
    for (const Json& name : schema["required"])
      if (!name.is_string() || !value.contains(name.get_ref<const std::string&>())) return false;
  const Json properties = schema.value("properties", Json::object());
  const Json patterns = schema.value("patternProperties", Json::object());
  for (const auto& [name, member] : value.items()) {
    bool is_known = properties.contains(name);
    if (is_known && !follows(member, properties[name], path + "/properties/" + name)) return false;
    for (const auto& [pattern, wanted] : patterns.items()) {
      if (!matches_pattern(name, pattern, false, path)) continue;
      is_known = true;
      if (!follows(member, wanted, path + "/patternProperties/" + pattern)) return false;
    }
    if (!is_known && !follows(member, additional_of(schema), path + "/additionalProperties")) return false;
  }
  return true;
}

}  // namespace weft::grammar
