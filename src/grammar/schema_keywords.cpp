#include "grammar/schema_keywords.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/json_number.h"

namespace weft::grammar {
namespace {

constexpr std::size_t kMostComparedValues = 10'000'000;

enum class Wants : std::uint8_t { anything, object, list, schema, schemas, text, count, number, boolean };

struct Keyword {
  std::string_view name;
  unsigned types;  // that it is about; 0: it says nothing, of_any: any
  Wants wants;
};

constexpr Keyword kKeywords[] = {
    {"type", of_any, Wants::anything},
    {"enum", of_any, Wants::list},
    {"const", of_any, Wants::anything},
    {"$ref", of_any, Wants::text},
    {"allOf", of_any, Wants::list},
    {"anyOf", of_any, Wants::list},
    {"oneOf", of_any, Wants::list},
    {"nullable", of_any, Wants::boolean},
    {"properties", of_object, Wants::object},
    {"required", of_object, Wants::list},
    {"additionalProperties", of_object, Wants::schema},
    {"patternProperties", of_object, Wants::object},
    {"minProperties", of_object, Wants::count},
    {"maxProperties", of_object, Wants::count},
    {"items", of_array, Wants::schemas},
    {"prefixItems", of_array, Wants::list},
    {"additionalItems", of_array, Wants::schema},
    {"minItems", of_array, Wants::count},
    {"maxItems", of_array, Wants::count},
    {"minLength", of_string, Wants::count},
    {"maxLength", of_string, Wants::count},
    {"pattern", of_string, Wants::text},
    {"format", of_string, Wants::text},
    {"minimum", of_number | of_integer, Wants::number},
    {"maximum", of_number | of_integer, Wants::number},
    {"exclusiveMinimum", of_number | of_integer, Wants::number},
    {"exclusiveMaximum", of_number | of_integer, Wants::number},
    {"multipleOf", of_number | of_integer, Wants::number},
    {"$defs", 0, Wants::object},
    {"definitions", 0, Wants::object},
    {"title", 0, Wants::anything},
    {"description", 0, Wants::anything},
    {"default", 0, Wants::anything},
    {"example", 0, Wants::anything},
    {"examples", 0, Wants::anything},
    {"deprecated", 0, Wants::anything},
    {"readOnly", 0, Wants::anything},
    {"writeOnly", 0, Wants::anything},
    {"discriminator", 0, Wants::anything},
    {"contentMediaType", 0, Wants::anything},
    {"contentEncoding", 0, Wants::anything},
    {"$schema", 0, Wants::anything},
    {"$id", 0, Wants::anything},
    {"$comment", 0, Wants::anything},
    {"strict", 0, Wants::anything},
};

const Keyword* find_keyword(std::string_view name) {
  for (const Keyword& keyword : kKeywords)
    if (keyword.name == name) return &keyword;
  return nullptr;
}

bool is_schema(const Json& value) { return value.is_boolean() || value.is_object(); }

bool is_count(const Json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number >= 0 && number < 1e9 && number == std::trunc(number);
}

std::optional<std::string_view> mistake(Wants wants, const Json& value) {
  switch (wants) {
    case Wants::anything:
      return std::nullopt;
    case Wants::object:
      if (!value.is_object()) return "an object";
      break;
    case Wants::list:
      if (!value.is_array()) return "a list";
      break;
    case Wants::schema:
      if (!is_schema(value)) return "a schema";
      break;
    case Wants::schemas:
      if (!is_schema(value) && !value.is_array()) return "a schema or a list of schemas";
      break;
    case Wants::text:
      if (!value.is_string()) return "a text";
      break;
    case Wants::count:
      if (!is_count(value)) return "a whole number that is not negative";
      break;
    case Wants::number:
      if (!value.is_number()) return "a number";
      break;
    case Wants::boolean:
      if (!value.is_boolean()) return "true or false";
      break;
  }
  return std::nullopt;
}

unsigned type_named(const Json& name, const std::string& path) {
  constexpr std::pair<std::string_view, unsigned> kNames[] = {
      {"object", of_object},   {"array", of_array},     {"string", of_string}, {"number", of_number | of_integer},
      {"integer", of_integer}, {"boolean", of_boolean}, {"null", of_null},
  };
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  fail_schema(path, fmt::format("the type {} is not one of JSON", json_text(name)));
}

unsigned type_of_value(const Json& value) {
  if (value.is_object()) return of_object;
  if (value.is_array()) return of_array;
  if (value.is_string()) return of_string;
  if (value.is_boolean()) return of_boolean;
  if (value.is_null()) return of_null;
  const bool is_whole =
      !value.is_number_float() ||
      value.get<double>() ==
          static_cast<double>(static_cast<std::int64_t>(std::clamp(value.get<double>(), -9e18, 9e18)));
  return is_whole ? of_integer : of_number;
}

bool share_no_value(const Json& a, const Json& b) {
  const auto of_a = listed_values(a), of_b = listed_values(b);
  if (!of_a || !of_b) return false;
  return std::none_of(of_a->begin(), of_a->end(),
                      [&](const Json& value) { return std::find(of_b->begin(), of_b->end(), value) != of_b->end(); });
}

std::set<std::string> required_by(const Json& schema) {
  std::set<std::string> names;
  for (const Json& name : schema.value("required", Json::array()))
    if (name.is_string()) names.insert(name.get<std::string>());
  return names;
}

Json joined_types(const Json& a, const Json& b, const std::string& path) {
  const unsigned common = types_of({{"type", a}}, path) & types_of({{"type", b}}, path);
  if (common == 0) fail_schema(path, "no type is in all of allOf");
  Json names = Json::array();
  for (const char* name : {"object", "array", "string", "boolean", "null"})
    if ((common & type_named(name, path)) != 0) names.push_back(name);
  if ((common & of_number) != 0) {
    names.push_back("number");
  } else if ((common & of_integer) != 0) {
    names.push_back("integer");
  }
  return names;
}

// Json looks at one member after the other. The object must outlive the result.
std::unordered_map<std::string_view, const Json*> members_by_name(const Json& object) {
  std::unordered_map<std::string_view, const Json*> members;
  for (auto item = object.begin(); item != object.end(); ++item) members.emplace(item.key(), &item.value());
  return members;
}

// The schemas of both objects; of those that both have, and that differ, what follows both.
Json joined_members(const Json& a, const Json& b) {
  const auto of_a = members_by_name(a), of_b = members_by_name(b);
  Json::object_t all;
  for (const auto& [key, schema] : a.items()) {
    const auto other = of_b.find(key);
    const bool differs = other != of_b.end() && *other->second != schema;
    all.emplace_back(key, differs ? Json{{"allOf", Json::array({schema, *other->second})}} : schema);
  }
  for (const auto& [key, schema] : b.items())
    if (!of_a.contains(key)) all.emplace_back(key, schema);
  return all;
}

// Of numbers. Json would compare integers of 64 bits with and without a sign wrongly.
bool is_less(const Json& a, const Json& b) {
  return Decimal::from_text(json_text(a)) < Decimal::from_text(json_text(b));
}

// The value of a keyword that both schemas have, and that differs.
Json joined(const std::string& name, const Json& a, const Json& b, const std::string& path) {
  if (name == "type") return joined_types(a, b, path);
  if (name == "required") {
    Json names = a;
    const std::set<std::string> known = required_by({{"required", a}});
    for (const Json& item : b)
      if (!item.is_string() || !known.contains(item.get<std::string>())) names.push_back(item);
    return names;
  }
  if (name == "properties" || name == "$defs" || name == "definitions") return joined_members(a, b);
  if (name == "enum") {
    if (a.size() * b.size() > kMostComparedValues) fail_schema(path, "allOf has two lists of enum that are too long");
    Json values = Json::array();
    for (const Json& value : a)
      if (std::find(b.begin(), b.end(), value) != b.end()) values.push_back(value);
    return values;
  }
  if (name.starts_with("min") || name == "exclusiveMinimum") return is_less(a, b) ? b : a;
  if (name.starts_with("max") || name == "exclusiveMaximum") return is_less(a, b) ? a : b;
  if (name == "nullable") return a == true && b == true;
  const Keyword* keyword = find_keyword(name);
  if (keyword != nullptr && keyword->types == 0) return a;
  fail_schema(path, fmt::format("allOf has two values of {} that cannot be joined", name));
}

// What follows both schemas. `false` is kept apart, as it says where a list ends.
Json both_schemas(const Json& a, const Json& b) {
  if (a == true || a == b) return b;
  if (b == true) return a;
  if (a == false || b == false) return false;
  return {{"allOf", Json::array({a, b})}};
}

// "items" of one schema is also about the positions that only "prefixItems" of the other one names.
void join_items(const Json& a, const Json& b, Json& all) {
  const Json first_of_a = a.value("prefixItems", Json::array()), first_of_b = b.value("prefixItems", Json::array());
  const Json others_of_a = a.value("items", Json(true)), others_of_b = b.value("items", Json(true));
  Json first = Json::array(), others = both_schemas(others_of_a, others_of_b);
  for (std::size_t i = 0; i < std::max(first_of_a.size(), first_of_b.size()); ++i) {
    Json item = both_schemas(i < first_of_a.size() ? first_of_a[i] : others_of_a,
                             i < first_of_b.size() ? first_of_b[i] : others_of_b);
    if (item == false) {  // a list ends before this position
      others = false;
      break;
    }
    first.push_back(std::move(item));
  }
  if (!first.empty() || all.contains("prefixItems")) all["prefixItems"] = std::move(first);
  if (others != true || all.contains("items")) all["items"] = std::move(others);
}

bool has_item_list(const Json& schema) { return schema.contains("items") && schema["items"].is_array(); }  // draft 7

bool has_all_properties(const Json& schema, const Json& other) {
  if (other.contains("patternProperties") && schema.value("patternProperties", Json()) != other["patternProperties"])
    return false;
  if (!other.contains("properties")) return true;
  const Json properties = schema.value("properties", Json::object());
  const auto known = members_by_name(properties);
  for (const auto& [key, unused] : other["properties"].items())
    if (!known.contains(key)) return false;
  return true;
}

// "additionalProperties" of one schema is also about the properties that only the other one names.
void check_additional(const Json& a, const Json& b, const std::string& path) {
  for (const auto& [schema, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const bool is_open = !schema->contains("additionalProperties") || (*schema)["additionalProperties"] == true;
    if (is_open || has_all_properties(*schema, *other)) continue;
    fail_schema(path, "allOf has additionalProperties beside properties of another schema, which cannot be joined");
  }
}

}  // namespace

void fail_schema(const std::string& path, std::string_view sentence) {
  fail_user("[schema] at {}: {}", quote("#" + path), sentence);
}

void check_keywords(const Json& schema, const std::string& path) {
  for (const auto& [name, value] : schema.items()) {
    const Keyword* keyword = find_keyword(name);
    if (keyword == nullptr && name.starts_with("x-")) continue;  // extensions say nothing by definition
    if (name == "uniqueItems" && value == false) continue;
    if (keyword == nullptr) fail_schema(path, fmt::format("the keyword {} is not supported", quote(name)));
    if (const auto wanted = mistake(keyword->wants, value))
      fail_schema(path, fmt::format("{} must be {}", name, *wanted));
  }
  if (has_item_list(schema) && schema.contains("prefixItems"))
    fail_schema(path, "items must be a schema beside prefixItems, but is a list");
}

std::string keywords_about(const Json& schema, unsigned types) {
  std::vector<std::string> names;
  for (const auto& [name, value] : schema.items()) {
    const Keyword* keyword = find_keyword(name);
    if (keyword != nullptr && (keyword->types == of_any ? types == of_any : (keyword->types & types) != 0))
      names.push_back(name);
  }
  return names.empty() ? "the schema" : fmt::format("{}", fmt::join(names, ", "));
}

int count_of(const Json& schema, const char* name, int absent) {
  return schema.contains(name) ? static_cast<int>(schema[name].get<double>()) : absent;
}

bool is_unconstrained(const Json& schema) {
  if (schema.is_boolean()) return schema == true;
  for (const auto& [name, value] : schema.items()) {
    const Keyword* keyword = find_keyword(name);
    if (keyword != nullptr && keyword->types != 0) return false;
  }
  return true;
}

std::optional<std::vector<Json>> listed_values(const Json& schema) {
  std::optional<std::vector<Json>> values;
  if (schema.contains("enum")) values.emplace(schema["enum"].begin(), schema["enum"].end());
  if (schema.contains("const")) {
    const Json& only = schema["const"];
    const bool has = !values || std::find(values->begin(), values->end(), only) != values->end();
    values.emplace();
    if (has) values->push_back(only);
  }
  return values;
}

unsigned types_of(const Json& schema, const std::string& path) {
  unsigned types = 0;
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    if (!type.is_array()) types = type_named(type, path);
    if (type.is_array())
      for (const Json& name : type) types |= type_named(name, path);
    if (types == 0) fail_schema(path, "type must name at least one type");
  } else if (!listed_values(schema)) {
    for (const auto& [name, value] : schema.items())
      if (const Keyword* keyword = find_keyword(name); keyword != nullptr && keyword->types != of_any)
        types |= keyword->types;
  }
  if (types == 0) types = of_any;
  if (schema.contains("nullable") && schema["nullable"] == true) types |= of_null;
  if (const auto values = listed_values(schema)) {
    unsigned listed = 0;
    for (const Json& value : *values) listed |= type_of_value(value);
    types &= listed;
  }
  return types;
}

Json merged(const Json& a, const Json& b, const std::string& path) {
  if (a.is_boolean()) return a == true ? b : a;
  if (b.is_boolean()) return b == true ? a : b;
  check_keywords(a, path);
  check_keywords(b, path);
  check_additional(a, b, path);
  const bool joins_items = !has_item_list(a) && !has_item_list(b);
  Json all = a;
  for (const auto& [name, value] : b.items()) {
    const bool is_later = joins_items && (name == "items" || name == "prefixItems");
    all[name] = !is_later && a.contains(name) && a[name] != value ? joined(name, a[name], value, path) : value;
  }
  if (joins_items) join_items(a, b, all);
  return all;
}

bool are_disjoint(const Json& a, const Json& b, const std::string& path) {
  if (!a.is_object() || !b.is_object()) return a == false || b == false;
  const unsigned common = types_of(a, path) & types_of(b, path);
  if (common == 0 || share_no_value(a, b)) return true;
  if (common != of_object || !a.contains("properties") || !b.contains("properties")) return false;
  const auto of_a = members_by_name(a["properties"]), of_b = members_by_name(b["properties"]);
  const auto required_by_b = required_by(b);
  for (const std::string& name : required_by(a)) {
    if (!required_by_b.contains(name) || !of_a.contains(name) || !of_b.contains(name)) continue;
    const Json &schema = *of_a.at(name), &other = *of_b.at(name);
    if (!schema.is_object() || !other.is_object()) continue;
    if (share_no_value(schema, other) || (types_of(schema, path) & types_of(other, path)) == 0) return true;
  }
  return false;
}

}  // namespace weft::grammar
