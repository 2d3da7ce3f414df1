#pragma once

// The keywords of JSON Schema that are known, what types each is about, and how two schemas become one that asks for
// both.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weft::grammar {

// Bits of the types of JSON values that a schema is about.
enum SchemaType : std::uint8_t {
  of_object = 1,
  of_array = 2,
  of_string = 4,
  of_number = 8,  // with of_integer: any number
  of_integer = 16,
  of_boolean = 32,
  of_null = 64,
  of_any = 127,
};

// UserError that names the schema and the keyword.
[[noreturn]] void fail_schema(const std::string& path, std::string_view sentence);

// UserError for a keyword that is not enforced, or whose value has the wrong type.
void check_keywords(const Json& schema, const std::string& path);

// The names of the schema's keywords that are about these types, for messages: "pattern, maxLength".
std::string keywords_about(const Json& schema, unsigned types);

// The value of a keyword that counts; `absent` without it.
int count_of(const Json& schema, const char* name, int absent);

// Whether the schema asks for nothing.
bool is_unconstrained(const Json& schema);

// The values of "enum" or "const", of both those in each; nullopt without them.
std::optional<std::vector<Json>> listed_values(const Json& schema);

// The types that may occur: those of "type" and "nullable", of "enum" and "const"; without them those that the keywords
// are about, or any. A schema of properties without "type" is meant for objects.
unsigned types_of(const Json& schema, const std::string& path);

// A schema whose values follow both. UserError where that is none that can be written plainly.
Json merged(const Json& a, const Json& b, const std::string& path);

// Whether no value follows both: they differ in type, in "const" or "enum", or in those of a property that both
// require.
bool are_disjoint(const Json& a, const Json& b, const std::string& path);

}  // namespace weft::grammar
