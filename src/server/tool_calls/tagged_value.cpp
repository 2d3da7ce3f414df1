#include "server/tool_calls/tagged_value.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace weft {
namespace {

const Json kNoValue;

const Json& member_at(const Json& object, const std::string& key) {
  if (!object.is_object()) return kNoValue;
  const auto found = object.find(key);
  return found == object.end() ? kNoValue : *found;
}

void add_type_name(const Json& name, std::vector<std::string>& types) {
  if (name.is_string()) types.push_back(name.get<std::string>());
}

std::string json_type_of(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_number()) return "number";
  if (value.is_null()) return "null";
  return value.is_array() ? "array" : "object";
}

// The types that a schema names; none if it does not say.
std::vector<std::string> schema_types_of(const Json& schema) {
  std::vector<std::string> types;
  const Json& type = member_at(schema, "type");
  add_type_name(type, types);
  if (type.is_array())
    for (const Json& name : type) add_type_name(name, types);
  for (const char* list : {"enum", "anyOf", "oneOf"}) {
    const Json& values = member_at(schema, list);
    if (!values.is_array() || !type.is_null()) continue;
    for (const Json& value : values) {
      if (std::string_view(list) == "enum") {
        types.push_back(json_type_of(value));
      } else {
        for (std::string& name : schema_types_of(value)) types.push_back(std::move(name));
      }
    }
  }
  return types;
}

// Python's words, which templates write.
std::string_view without_python(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  return text == "None" ? "null" : text;
}

bool has_json_type(const std::vector<std::string>& types, const Json& value) {
  const std::string type = json_type_of(value);
  return std::any_of(types.begin(), types.end(), [&](const std::string& name) {
    return name == type || (name == "integer" && value.is_number_integer());
  });
}

}  // namespace

const Json& argument_schema(const Json& tools, std::string_view function, const std::string& key) {
  if (!tools.is_array()) return kNoValue;
  for (const Json& tool : tools) {
    const Json& described = member_at(tool, "function");
    if (member_at(described, "name") == function)
      return member_at(member_at(member_at(described, "parameters"), "properties"), key);
  }
  return kNoValue;
}

bool is_string_alone(const Json& schema) {
  const std::vector<std::string> types = schema_types_of(schema);
  return std::all_of(types.begin(), types.end(), [](const std::string& name) { return name == "string"; });
}

std::string value_as_json(std::string_view text, const Json& schema) {
  const std::vector<std::string> types = schema_types_of(schema);
  const std::string_view word = without_python(trim(text));
  const Json value = parse_json(std::string(word));
  const bool may_be_string = std::find(types.begin(), types.end(), "string") != types.end();
  // A value of another type than asked for is passed on, unless a string is right.
  const bool is_other = may_be_string ? !value.is_string() && has_json_type(types, value) : true;
  return !value.is_discarded() && is_other ? std::string(word) : json_text(std::string(text));
}

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      all += c;  // a part of a character, maybe
      continue;
    }
    const std::string quoted = json_text(std::string(1, c));
    all += std::string_view(quoted).substr(1, quoted.size() - 2);
  }
  return all;
}

}  // namespace weft
