#include "server/structured_outputs.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"
#include "server/api_error.h"

namespace weft {
namespace {

using Kind = StructuredOutput::Kind;

constexpr const char* kOutputsField = "structured_outputs";
constexpr JsonLimits kSchemaLimits{.most_bytes = 4 << 20, .deepest = 128};

ApiError wrong_output(const char* field, const std::string& sentence) {
  return wrong_value(fmt::format("[{}] {}", field, sentence), field);
}

// A message without the "[schema] " at its beginning, since the field has its own.
std::string without_prefix(const std::string& message) {
  const auto end = message.find("] ");
  return message.starts_with('[') && end != std::string::npos ? message.substr(end + 2) : message;
}

bool is_set(const Json& object, const char* name) { return object.contains(name) && !object[name].is_null(); }

bool flag_of(const Json& object, const char* name, const char* field) {
  if (!is_set(object, name)) return false;
  if (!object[name].is_boolean()) throw wrong_output(field, fmt::format("{} must be true or false", name));
  return object[name].get<bool>();
}

// A schema as an object or as the text of one.
Json schema_of(const Json& value, const char* field, const char* name) {
  Json schema = value;
  if (value.is_string()) {
    try {
      schema = parse_json(value.get_ref<const std::string&>(), name, kSchemaLimits);
    } catch (const UserError& error) {
      throw wrong_output(field, fmt::format("{}: {}", name, without_prefix(error.what())));
    }
  }
  if (!schema.is_object() && !schema.is_boolean())
    throw wrong_output(field, fmt::format("{} must be a JSON schema", name));
  return schema;
}

// `field` is the name that the request has for it.
std::optional<StructuredOutput> read_format(const Json& format, const char* field) {
  if (format.is_null()) return std::nullopt;
  const Json type = format.contains("type") ? format["type"] : Json();
  if (type == "text") return std::nullopt;
  // llama.cpp's form has the schema beside the type.
  const bool has_schema = is_set(format, "schema"), has_json_schema = is_set(format, "json_schema");
  if (type == "json_object" && has_json_schema)
    throw wrong_output(field, "type must be json_schema for json_schema, but is json_object");
  if (has_schema && has_json_schema) throw wrong_output(field, "json_schema excludes schema");
  if (has_schema && (type == "json_object" || type == "json_schema"))
    return StructuredOutput{.kind = Kind::json_schema,
                            .value = schema_of(format["schema"], field, "schema"),
                            .closes_objects = flag_of(format, "strict", field)};
  if (type == "json_object") return StructuredOutput{};
  if (type == "structural_tag")
    throw not_made_here(fmt::format("[{}] structural_tag is not supported yet", field), field);
  if (type != "json_schema")
    throw wrong_type(
        fmt::format("[{}] type must be text, json_object or json_schema, but is {}", field, json_text(type)), field);
  if (!is_set(format, "json_schema") || !format["json_schema"].is_object())
    throw wrong_output(field, "json_schema must be an object with a schema");
  const Json& given = format["json_schema"];
  if (!is_set(given, "schema")) return StructuredOutput{};
  return StructuredOutput{.kind = Kind::json_schema,
                          .value = schema_of(given["schema"], field, "json_schema.schema"),
                          .closes_objects = flag_of(given, "strict", field)};
}

Json text_at(const Json& outputs, const char* name) {
  if (!outputs[name].is_string()) throw wrong_output(kOutputsField, fmt::format("{} must be a text", name));
  return outputs[name];
}

Json choices_of(const Json& outputs) {
  const Json& choices = outputs["choice"];
  if (!choices.is_array() || choices.empty())
    throw wrong_output(kOutputsField, "choice must be a list of texts, not empty");
  for (const Json& choice : choices)
    if (!choice.is_string()) throw wrong_output(kOutputsField, "choice must be a list of texts");
  return choices;
}

std::optional<StructuredOutput> read_outputs(const Json& outputs) {
  if (outputs.is_null()) return std::nullopt;
  constexpr std::string_view kKnown[] = {"json",
                                         "regex",
                                         "choice",
                                         "grammar",
                                         "json_object",
                                         "structural_tag",
                                         "disable_any_whitespace",
                                         "disable_additional_properties",
                                         "whitespace_pattern"};
  for (const auto& [name, value] : outputs.items())
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      throw wrong_output(kOutputsField, fmt::format("the key {} is not known", quote(name)));
  if (is_set(outputs, "structural_tag"))
    throw not_made_here("[structured_outputs] structural_tag is not supported yet", kOutputsField);
  std::vector<StructuredOutput> given;
  if (is_set(outputs, "json"))
    given.push_back({.kind = Kind::json_schema, .value = schema_of(outputs["json"], kOutputsField, "json")});
  if (is_set(outputs, "regex")) given.push_back({.kind = Kind::regex, .value = text_at(outputs, "regex")});
  if (is_set(outputs, "choice")) given.push_back({.kind = Kind::choice, .value = choices_of(outputs)});
  if (is_set(outputs, "grammar")) given.push_back({.kind = Kind::grammar, .value = text_at(outputs, "grammar")});
  if (flag_of(outputs, "json_object", kOutputsField)) given.push_back({});
  if (given.size() != 1)
    throw wrong_output(
        kOutputsField,
        fmt::format("wanted one of json, regex, choice, grammar and json_object, but has {}", given.size()));
  given[0].has_white_space = !flag_of(outputs, "disable_any_whitespace", kOutputsField);
  given[0].closes_objects = flag_of(outputs, "disable_additional_properties", kOutputsField);
  if (is_set(outputs, "whitespace_pattern")) given[0].white_space_pattern = text_at(outputs, "whitespace_pattern");
  return given[0];
}

grammar::Grammar grammar_for(const StructuredOutput& output) {
  grammar::Grammar made;
  switch (output.kind) {
    case Kind::json_object:
    case Kind::json_schema: {
      grammar::SchemaOptions options{.closes_objects = output.closes_objects};
      options.white_space.is_allowed = output.has_white_space;
      if (output.white_space_pattern.is_string()) options.white_space.pattern = output.white_space_pattern;
      return grammar::schema_grammar(output.value, options);
    }
    case Kind::regex:
      made.root = made.add("root", grammar::read_regex(output.value.get_ref<const std::string&>()));
      return made;
    case Kind::choice: {
      std::vector<grammar::Expression> choices;
      for (const Json& choice : output.value) choices.push_back(grammar::text_of(choice));
      made.root = made.add("root", grammar::choice_of(std::move(choices)));
      return made;
    }
    case Kind::grammar:
      break;
  }
  return grammar::read_ebnf(output.value.get_ref<const std::string&>());
}

std::shared_ptr<const TokenConstraint> compile_for(const std::optional<StructuredOutput>& output, const char* field,
                                                   const ConstraintCompiler* compiler) {
  if (!output) return nullptr;
  if (compiler == nullptr) throw wrong_output(field, "the model has no tokenizer, so its answers are no text");
  try {
    return compile_output(*output, *compiler);
  } catch (const UserError& error) {
    throw wrong_output(field, without_prefix(error.what()));
  }
}

}  // namespace

std::shared_ptr<const TokenConstraint> compile_output(const StructuredOutput& output,
                                                      const ConstraintCompiler& compiler) {
  const Json key = {static_cast<int>(output.kind), output.value, output.has_white_space, output.closes_objects,
                    output.white_space_pattern};
  return compiler.compile(json_text(key), [&] { return grammar_for(output); });
}

std::shared_ptr<const TokenConstraint> constraint_of(const Json& response_format, const Json& structured_outputs,
                                                     const ConstraintCompiler* compiler, const char* format_field) {
  const std::optional<StructuredOutput> format = read_format(response_format, format_field),
                                        outputs = read_outputs(structured_outputs);
  return format ? compile_for(format, format_field, compiler) : compile_for(outputs, kOutputsField, compiler);
}

std::shared_ptr<const TokenConstraint> llama_constraint_of(const Json& json_schema, const std::string& grammar,
                                                           const ConstraintCompiler* compiler) {
  if (!json_schema.is_null())
    return compile_for(StructuredOutput{.kind = Kind::json_schema, .value = json_schema}, "json_schema", compiler);
  if (grammar.empty()) return nullptr;
  return compile_for(StructuredOutput{.kind = Kind::grammar, .value = grammar}, "grammar", compiler);
}

}  // namespace weft
