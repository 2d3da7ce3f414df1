#pragma once

// `response_format` and `structured_outputs`: what an answer may be. src/grammar/ compiles it, and the engine masks
// tokens by it.

#include <memory>
#include <string>

#include "base/json.h"
#include "engine/sampling/grammar_constraint.h"

namespace weft {

// What one of the fields asks for.
struct StructuredOutput {
  enum class Kind { json_object, json_schema, regex, choice, grammar };
  Kind kind = Kind::json_object;
  Json value;  // the schema, the choices, or the text of the expression or grammar
  bool has_white_space = true;
  bool closes_objects = false;
  Json white_space_pattern;  // null for the bounded white space of JsonParts
};

// The constraint of a request: null where both fields are null or ask for nothing. `response_format` counts more,
// unless it asks for text. ApiError 400 that names the field for what is not known, cannot be enforced or takes too
// long to compile; 501 for structural tags. `format_field` is the name that the request has for `response_format`.
// `compiler` is null without a tokenizer, which is an error if there is something to enforce.
std::shared_ptr<const TokenConstraint> constraint_of(const Json& response_format, const Json& structured_outputs,
                                                     const ConstraintCompiler* compiler,
                                                     const char* format_field = "response_format");

// That of llama.cpp's `json_schema` and `grammar`, with the same rules; null if neither is given. At most one of them
// is given: not null, not "".
std::shared_ptr<const TokenConstraint> llama_constraint_of(const Json& json_schema, const std::string& grammar,
                                                           const ConstraintCompiler* compiler);

// What is written on the command line, with the same rules. UserError.
std::shared_ptr<const TokenConstraint> compile_output(const StructuredOutput& output,
                                                      const ConstraintCompiler& compiler);

}  // namespace weft
