#pragma once

// The constraint of an answer that must consist of tool calls: `tool_choice` required or a function.

#include <memory>

#include "base/json.h"
#include "engine/sampling/grammar_constraint.h"
#include "server/api_request.h"
#include "server/tool_calls/dialects.h"

namespace weft {

// Of a required choice: calls in the dialect's envelope, one with `has_one_call` and else one or more. Of a named one:
// the arguments of that function alone. Arguments follow the `parameters` of their tool: objects with `properties` have
// no other members, unless `additionalProperties` says so, and a tool without parameters has {}.
//
// `tools` are as checked by check_fields(). ApiError 400 for parameters that are a schema which cannot be enforced.
// `compiler` is null without a tokenizer, which is an error, too.
std::shared_ptr<const TokenConstraint> call_constraint(const Json& tools, const ToolChoice& choice,
                                                       const ToolDialect& dialect, bool has_one_call,
                                                       const ConstraintCompiler* compiler);

}  // namespace weft
