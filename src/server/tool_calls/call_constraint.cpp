#include "server/tool_calls/call_constraint.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/json_schema.h"
#include "server/api_error.h"

namespace weft {
namespace {

Json arguments_schema(const Json& function) {
  const Json parameters = function.value("parameters", Json());
  if (!parameters.is_null() && !parameters.empty()) return parameters;
  return {{"type", "object"}, {"additionalProperties", false}};
}

grammar::SchemaCases cases_of(const Json& tools, const ToolChoice& choice, const ToolDialect& dialect,
                              bool has_one_call) {
  const CallEnvelope& envelope = dialect.envelope;
  const bool is_named = choice.kind == ToolChoice::Kind::named;
  grammar::SchemaCases cases{.cases = {}, .most = has_one_call || is_named ? 1 : grammar::kUnbounded};
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    const auto& name = function["name"].get_ref<const std::string&>();
    const std::string place = fmt::format("parameters of {}", quote(name));
    if (!is_named) {
      cases.cases.push_back({.before = fmt::format("{}{}{}", envelope.before_name, name, envelope.before_arguments),
                             .schema = arguments_schema(function),
                             .after = std::string(envelope.after_arguments),
                             .name = place});
    } else if (name == choice.function) {
      cases.cases.push_back({.before = "", .schema = arguments_schema(function), .after = "", .name = place});
    }
  }
  if (is_named) return cases;
  cases.begin = envelope.begin;
  cases.separator = envelope.between;
  cases.end = envelope.end;
  return cases;
}

std::string key_of(const grammar::SchemaCases& cases) {
  Json key{"calls", cases.begin, cases.separator, cases.end, cases.most};
  for (const grammar::SchemaCase& one : cases.cases) key.push_back({one.before, one.schema, one.after, one.name});
  return json_text(key);
}

}  // namespace

std::shared_ptr<const TokenConstraint> call_constraint(const Json& tools, const ToolChoice& choice,
                                                       const ToolDialect& dialect, bool has_one_call,
                                                       const ConstraintCompiler* compiler) {
  if (compiler == nullptr)
    throw wrong_value("[tool_choice] must be none or auto: the model has no tokenizer, so its answers are no text",
                      "tool_choice");
  const grammar::SchemaCases cases = cases_of(tools, choice, dialect, has_one_call);
  try {
    return compiler->compile(key_of(cases),
                             [&] { return grammar::schema_cases_grammar(cases, {.closes_objects = true}); });
  } catch (const UserError& error) {
    throw wrong_value(fmt::format("[tools] {}", error.what()), "tools");
  }
}

}  // namespace weft
