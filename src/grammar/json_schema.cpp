#include "grammar/json_schema.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hexadecimal.h"
#include "base/text.h"
#include "grammar/budget.h"
#include "grammar/counted_automaton.h"
#include "grammar/json_formats.h"
#include "grammar/json_number.h"
#include "grammar/regex.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_reader.h"

namespace weft::grammar {
namespace {

constexpr int kDeepestSchema = 64;
// Merging can multiply schemas.
constexpr int kMostSchemas = 20'000;

// A part of a URI with %HH as the bytes that they are.
std::string without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hexadecimal_value(text[i + 1]) >= 0 &&
                           hexadecimal_value(text[i + 2]) >= 0;
    if (is_escape) {
      plain += static_cast<char>(hexadecimal_value(text[i + 1]) * 16 + hexadecimal_value(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

Expression value_of_schema(Grammar& grammar, JsonParts& parts, const Json& schema, const SchemaOptions& options) {
  return SchemaReader(grammar, parts, schema, options).value_of(schema, "");
}

}  // namespace

Expression SchemaReader::value_of(const Json& schema, const std::string& path) {
  if (++depth_ > kDeepestSchema) fail_schema(path, fmt::format("must be nested at most {} deep", kDeepestSchema));
  if (++schemas_ > kMostSchemas) fail_schema(path, fmt::format("has more than {} schemas", kMostSchemas));
  budget_.check_time();
  Expression value = any_value_of(schema, path);
  --depth_;
  return value;
}

Expression SchemaReader::any_value_of(const Json& schema, const std::string& path) {
  if (schema.is_boolean()) return schema == true ? parts_.value() : choice_of({});
  if (!schema.is_object()) fail_schema(path, "a schema must be an object, true or false");
  check_keywords(schema, path);
  if (is_unconstrained(schema)) return parts_.value();
  if (schema.contains("$ref")) return reference_of(schema, path);
  if (schema.contains("allOf")) return value_of(with_all(schema, path), path);
  for (const char* name : {"anyOf", "oneOf"})
    if (schema.contains(name)) return branches_of(schema, name, path);
  if (schema.contains("enum") || schema.contains("const")) return listed_value_of(schema, path);
  return typed_value_of(schema, path);
}

Expression SchemaReader::typed_value_of(const Json& schema, const std::string& path) {
  const unsigned types = types_of(schema, path);
  std::vector<Expression> ways;
  if ((types & of_object) != 0) ways.push_back(object_of(schema, path));
  if ((types & of_array) != 0) ways.push_back(array_of(schema, path));
  if ((types & of_string) != 0) ways.push_back(string_of(schema, path));
  if ((types & (of_number | of_integer)) != 0) ways.push_back(number_of(schema, (types & of_number) == 0, path));
  if ((types & of_boolean) != 0) ways.push_back(parts_.boolean());
  if ((types & of_null) != 0) ways.push_back(parts_.null());
  return ways.size() == 1 ? ways[0] : choice_of(std::move(ways));
}

const Json& SchemaReader::target_of(const std::string& reference, const std::string& path) const {
  if (!reference.starts_with('#'))
    fail_schema(path, fmt::format("$ref {} must be into this schema: #/...", quote(reference)));
  const Json* found = &document_;
  if (reference == "#") return *found;
  if (!reference.starts_with("#/"))
    fail_schema(path, fmt::format("$ref {} must be a JSON pointer: #/...", quote(reference)));
  for (std::string key : split_text(std::string_view(reference).substr(2), '/')) {
    key = replace_all(replace_all(without_percents(key), "~1", "/"), "~0", "~");
    const bool is_index =
        found->is_array() && !key.empty() && key.size() < 6 && key.find_first_not_of("0123456789") == std::string::npos;
    if (found->is_object() && found->contains(key)) {
      found = &(*found)[key];
    } else if (is_index && std::stoul(key) < found->size()) {
      found = &(*found)[std::stoul(key)];
    } else {
      fail_schema(path, fmt::format("$ref {} is to nothing", quote(reference)));
    }
  }
  return *found;
}

Expression SchemaReader::reference_of(const Json& schema, const std::string& path) {
  Json others = schema;
  others.erase("$ref");
  if (!is_unconstrained(others)) return value_of(resolved(schema, path), path);
  const auto reference = schema["$ref"].get<std::string>();
  const auto [found, is_new] = references_.try_emplace(reference, 0);
  const int rule = is_new ? grammar_.add(reference.substr(1), nullptr, "$ref") : found->second;
  if (is_new) {
    found->second = rule;
    Expression body = value_of(target_of(reference, path), reference.substr(1));
    grammar_.rules[static_cast<std::size_t>(rule)].body = std::move(body);
  }
  return call_of(rule);
}

// The schema with the target of its $ref, and of its target, in its place.
Json SchemaReader::resolved(const Json& schema, const std::string& path) const {
  Json all = schema;
  for (int i = 0; all.is_object() && all.contains("$ref"); ++i) {
    check_keywords(all, path);
    if (i == kDeepestSchema) fail_schema(path, "$ref leads back to itself");
    const Json target = target_of(all["$ref"].get<std::string>(), path);
    all.erase("$ref");
    all = merged(all, target, path);
  }
  return all;
}

Json SchemaReader::with_all(const Json& schema, const std::string& path) const {
  Json all = schema;
  all.erase("allOf");
  for (const Json& part : schema["allOf"]) {
    budget_.check_time();
    if (!part.is_object() && !part.is_boolean()) fail_schema(path, "allOf must be a list of schemas");
    all = merged(all, resolved(part, path), path);
  }
  return all;
}

Expression SchemaReader::branches_of(const Json& schema, const char* name, const std::string& path) {
  const Json& branches = schema[name];
  if (branches.empty()) fail_schema(path, fmt::format("{} must have at least one schema", name));
  Json others = schema;
  others.erase(name);
  const bool is_alone = is_unconstrained(others);
  std::vector<Json> all;
  for (const Json& branch : branches) {
    if (!branch.is_object() && !branch.is_boolean())
      fail_schema(path, fmt::format("{} must be a list of schemas", name));
    budget_.check_time();
    all.push_back(is_alone ? branch : merged(others, resolved(branch, path), path));
  }
  if (std::string_view(name) == "oneOf") check_one_of(all, path);
  std::vector<Expression> ways;
  for (std::size_t i = 0; i < all.size(); ++i) ways.push_back(value_of(all[i], fmt::format("{}/{}/{}", path, name, i)));
  if (schema.contains("nullable") && schema["nullable"] == true) ways.push_back(parts_.null());
  return choice_of(std::move(ways));
}

// A value must follow exactly one of the schemas: enforced where no value can follow two.
void SchemaReader::check_one_of(const std::vector<Json>& branches, const std::string& path) const {
  std::vector<Json> all;
  for (const Json& branch : branches) {
    all.push_back(resolved(branch, path));
    if (all.back().is_object()) check_keywords(all.back(), path);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      budget_.check_time();
      if (!are_disjoint(all[i], all[j], path))
        fail_schema(path, fmt::format("oneOf is supported where type, const or enum tell its schemas apart, but {} and "
                                      "{} may both match: anyOf asks for less",
                                      j, i));
    }
}

Expression SchemaReader::listed_value_of(const Json& schema, const std::string& path) {
  const std::optional<std::vector<Json>> values = listed_values(schema);
  std::vector<Expression> ways;
  Json others = schema;
  others.erase("enum");
  others.erase("const");
  for (const Json& value : *values)
    if (follows(value, others, path)) ways.push_back(text_of(json_text(value)));
  if (ways.empty()) fail_schema(path, fmt::format("{}: no listed value is left", keywords_about(schema, of_any)));
  return choice_of(std::move(ways));
}

Expression SchemaReader::number_of(const Json& schema, bool is_integer, const std::string& path) {
  NumberBounds bounds;
  const auto take = [&](const char* name, std::optional<Decimal>& bound) {
    if (schema.contains(name)) bound = Decimal::from_text(json_text(schema[name]));
  };
  take("minimum", bounds.minimum);
  take("maximum", bounds.maximum);
  take("exclusiveMinimum", bounds.above);
  take("exclusiveMaximum", bounds.below);
  if (schema.contains("multipleOf")) {
    const double factor = schema["multipleOf"].get<double>();
    if (!is_integer || factor < 1 || factor > 100 || factor != static_cast<int>(factor))
      fail_schema(path, "multipleOf is supported for integers, and from 1 to 100");
    bounds.multiple_of = static_cast<int>(factor);
  }
  if (!bounds.has_any()) return is_integer ? parts_.integer() : parts_.number();
  const std::string keywords = keywords_about(schema, of_number);
  Expression number = is_integer ? integers_within(bounds, grammar_) : numbers_within(bounds, kMostDigits);
  if (!is_integer && !matches_something(number, path, keywords)) number = numbers_within(bounds, digits_for(bounds));
  check_not_empty(number, path, keywords, "no number is within the bounds");
  return call_of(grammar_.add(path, std::move(number), keywords));
}

Expression SchemaReader::string_of(const Json& schema, const std::string& path) {
  const int least = count_of(schema, "minLength", 0);
  int most = count_of(schema, "maxLength", kUnbounded);
  if (const auto longest = longest_of_format(schema.value("format", std::string())))
    most = most == kUnbounded ? *longest : std::min(most, *longest);
  if (most != kUnbounded && most < least)
    fail_schema(path, "no string is as long as minLength, maxLength and format ask for");
  const bool has_length = least > 0 || most != kUnbounded;
  if (!has_length && !schema.contains("pattern") && !schema.contains("format")) return parts_.string();
  std::string key;
  for (const char* name : {"minLength", "maxLength", "pattern", "format"})
    key += json_text(schema.value(name, Json())) + ' ';
  if (const auto known = strings_.find(key); known != strings_.end()) return call_of(known->second);
  Expression content;
  const auto join = [&](Expression other) {
    content = content == nullptr ? std::move(other) : both_of(content, std::move(other));
  };
  if (schema.contains("pattern")) join(pattern_of(schema["pattern"].get<std::string>(), path));
  if (schema.contains("format")) join(format_of(schema["format"].get<std::string>(), path));
  Expression string = quoted(content == nullptr ? parts_.characters() : std::move(content));
  if (has_length) string = parts_.bounded_string(std::move(string), least, most);
  const std::string keywords = keywords_about(schema, of_string);
  check_not_empty(string, path, keywords, "no string has the pattern, the format and the length");
  const int rule = grammar_.add(path, std::move(string), keywords);
  strings_[key] = rule;
  return call_of(rule);
}

Expression SchemaReader::pattern_of(const std::string& pattern, const std::string& path) const {
  try {
    return json_encoded(read_search_regex(pattern));
  } catch (const OutOfTime&) {
    throw;
  } catch (const UserError& error) {
    fail_schema(path, fmt::format("pattern: {}", error.what()));
  }
}

Expression SchemaReader::format_of(const std::string& format, const std::string& path) const {
  const std::optional<std::string> pattern = format_pattern(format);
  if (!pattern)
    fail_schema(path,
                fmt::format("the format {} is not supported{}", quote(format), suggestion(format, format_names())));
  return json_encoded(read_regex(*pattern));
}

void SchemaReader::check_not_empty(const Expression& expression, const std::string& path, const std::string& keywords,
                                   const char* sentence) {
  if (!matches_something(expression, path, keywords)) fail_schema(path, fmt::format("{}: {}", keywords, sentence));
}

bool SchemaReader::matches_something(const Expression& expression, const std::string& path,
                                     const std::string& keywords) {
  if (expression->kind != ExpressionKind::counted) {
    const Automaton automaton = automaton_of(expression, path, keywords);
    return std::any_of(automaton.begin(), automaton.end(), [](const AutomatonState& state) { return state.accepts; });
  }
  try {
    return make_counted_automaton(grammar_, *expression, budget_).matches_something();
  } catch (const OverBudget& error) {
    fail_schema(path, fmt::format("{} {}", keywords, error.what()));
  }
}

Automaton SchemaReader::automaton_of(const Expression& expression, const std::string& path,
                                     const std::string& keywords) {
  try {
    return make_automaton(grammar_, expression, budget_);
  } catch (const OverBudget& error) {
    fail_schema(path, fmt::format("{} {}", keywords, error.what()));
  }
}

Grammar schema_grammar(const Json& schema, const SchemaOptions& options) {
  Grammar grammar;
  JsonParts parts(grammar, options.white_space);
  grammar.root = grammar.add("", nullptr, schema.is_object() ? keywords_about(schema, of_any) : "the schema");
  Expression body = schema.is_null() ? parts.object() : value_of_schema(grammar, parts, schema, options);
  grammar.rules[static_cast<std::size_t>(grammar.root)].body = std::move(body);
  return grammar;
}

namespace {

Expression value_of_case(Grammar& grammar, JsonParts& parts, const SchemaCase& one, const SchemaOptions& options) {
  try {
    return value_of_schema(grammar, parts, one.schema, options);
  } catch (const OutOfTime&) {
    throw;
  } catch (const UserError& error) {
    if (one.name.empty()) throw;
    fail_user("{}: {}", one.name, error.what());
  }
}

}  // namespace

Grammar schema_cases_grammar(const SchemaCases& cases, const SchemaOptions& options) {
  Grammar grammar;
  JsonParts parts(grammar, options.white_space);
  grammar.root = grammar.add("root");
  std::vector<Expression> ways;
  for (const SchemaCase& one : cases.cases) {
    const std::size_t first = grammar.rules.size();
    ways.push_back(sequence_of({text_of(one.before), value_of_case(grammar, parts, one, options), text_of(one.after)}));
    for (std::size_t rule = first; rule < grammar.rules.size(); ++rule) grammar.rules[rule].document = one.name;
  }
  const Expression one = call_of(grammar.add("case", choice_of(std::move(ways))));
  std::vector<Expression> lists;
  if (cases.least == 0) lists.push_back(text_of(""));
  if (cases.most != 0) lists.push_back(separated(one, text_of(cases.separator), cases.least, cases.most));
  grammar.rules[static_cast<std::size_t>(grammar.root)].body =
      sequence_of({text_of(cases.begin), choice_of(std::move(lists)), text_of(cases.end)});
  return grammar;
}

}  // namespace weft::grammar
