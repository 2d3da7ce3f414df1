#pragma once

// JSON Schema (2020-12, and what draft 7 and OpenAPI 3.0 write otherwise) as expressions of a grammar.
//
// Everything that a schema asks for is enforced, or refused by name: UserError, "[schema] at "#/properties/a": ...".
// schema_keywords.cpp has the table. Properties come in the order of the schema, additional ones after them. A schema
// without "type" is for the types that its keywords are about. A schema of integers allows no fraction and no exponent
// and at most 18 digits, or as many as its bounds; a number within bounds has at most 17 digits and no exponent.
// "minProperties" is at most 1 where any key is allowed, and "maxProperties" counts members as they are written.

#include <string>
#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"
#include "grammar/json_parts.h"

namespace weft::grammar {

struct SchemaOptions {
  WhiteSpace white_space = {};
  // Objects with "properties" and without "additionalProperties" have no others.
  bool closes_objects = false;
};

// A grammar of these values. Null as schema: any object.
Grammar schema_grammar(const Json& schema, const SchemaOptions& options);

// A value within fixed text, as a call of a tool is: `before`, a value of the schema, `after`.
struct SchemaCase {
  std::string before;
  Json schema;
  std::string after;
  std::string name = {};  // begins messages about it
};

// How often cases follow each other, and what is around and between them. `most` may be kUnbounded.
struct SchemaCases {
  std::vector<SchemaCase> cases;
  std::string begin = {}, separator = {}, end = {};
  int least = 1, most = 1;
};

// A grammar of `begin`, `least` to `most` of the cases, each any of them, and `end`. UserError as above; `$ref` is into
// the schema of the case.
Grammar schema_cases_grammar(const SchemaCases& cases, const SchemaOptions& options);

}  // namespace weft::grammar
