// Parses the operands of expressions: names, literals, attributes, calls, filters and tests.

#include <algorithm>

#include "io/jinja/expression_builder.h"
#include "io/jinja/expression_parser.h"
#include "io/jinja/filters.h"
#include "io/jinja/number.h"
#include "io/jinja/tests.h"
#include "io/jinja/text.h"

namespace weft::jinja {

ExpressionPtr ExpressionParser::parse_primary() {
  switch (tokens_.current().kind) {
    case TokenKind::name:
      return parse_name();
    case TokenKind::string:
      return parse_strings();
    case TokenKind::integer:
    case TokenKind::real:
      return parse_number();
    default:
      break;
  }
  if (tokens_.at_symbol("(")) return parse_parentheses();
  if (tokens_.at_symbol("[")) return parse_list();
  if (tokens_.at_symbol("{")) return parse_dict();
  tokens_.fail("expected an expression but found {}", describe(tokens_.current()));
}

ExpressionPtr ExpressionParser::parse_name() {
  Token token = tokens_.next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make_constant(token.line, Value::boolean(true));
  if (name == "false" || name == "False") return make_constant(token.line, Value::boolean(false));
  if (name == "none" || name == "None") return make_constant(token.line, Value::none());
  used_.caller |= name == "caller";
  used_.varargs |= name == "varargs";
  used_.kwargs |= name == "kwargs";
  used_.loop |= name == "loop";
  auto variable = make_expression(ExpressionKind::variable, token.line);
  variable->name = std::move(token.text);
  return finish(std::move(variable));
}

// Adjacent string literals form one string.
ExpressionPtr ExpressionParser::parse_strings() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.at(TokenKind::string)) text += tokens_.next().text;
  return make_constant(line, Value::string(std::move(text)));
}

ExpressionPtr ExpressionParser::parse_number() {
  const Token token = tokens_.next();
  if (token.kind == TokenKind::real) {
    const auto real = parse_real(token.text);
    if (!real) TokenStream::fail_at(token.line, fmt::format("'{}' is not a number", token.text));
    return make_constant(token.line, Value::real(*real));
  }
  try {
    const auto integer = parse_integer(token.text, 0);
    if (!integer) TokenStream::fail_at(token.line, fmt::format("'{}' is not a number", token.text));
    return make_constant(token.line, Value::integer(*integer));
  } catch (const TemplateFailure& failure) {
    TokenStream::fail_at(token.line, failure.what());
  }
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const int line = tokens_.next().line;
  if (tokens_.skip_symbol(")")) return make_finished(ExpressionKind::tuple, line);
  ExpressionPtr inside = parse_tuple();
  tokens_.expect_symbol(")");
  return inside;
}

ExpressionPtr ExpressionParser::parse_list() {
  auto list = make_expression(ExpressionKind::list, tokens_.next().line);
  while (!tokens_.at_symbol("]")) {
    list->operands.push_back(parse());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("]");
  return finish(std::move(list));
}

ExpressionPtr ExpressionParser::parse_dict() {
  auto dict = make_expression(ExpressionKind::dict, tokens_.next().line);
  while (!tokens_.at_symbol("}")) {
    dict->operands.push_back(parse());
    tokens_.expect_symbol(":");
    dict->operands.push_back(parse());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("}");
  return finish(std::move(dict));
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return tokens_.at(TokenKind::variable_end) || tokens_.at(TokenKind::block_end) || tokens_.at_symbol(")") ||
         (!end_name.empty() && tokens_.at_name(end_name));
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_condition, std::string_view end_name) {
  ExpressionPtr first = parse(with_condition);
  if (!tokens_.at_symbol(",")) return first;
  const int line = first->line;
  auto tuple = make_expression(ExpressionKind::tuple, line, std::move(first));
  while (tokens_.skip_symbol(",") && !at_tuple_end(end_name)) tuple->operands.push_back(parse(with_condition));
  return finish(std::move(tuple));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr expression) {
  for (;;) {
    if (tokens_.at_symbol(".")) {
      expression = parse_attribute(std::move(expression));
    } else if (tokens_.at_symbol("[")) {
      expression = parse_item(std::move(expression));
    } else if (tokens_.at_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr expression) {
  for (;;) {
    if (tokens_.skip_symbol("|")) {
      expression = parse_filter(std::move(expression));
    } else if (tokens_.at_name("is")) {
      expression = parse_test(std::move(expression));
    } else if (tokens_.at_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const int line = tokens_.next().line;
  if (tokens_.at(TokenKind::integer))
    return make_finished(ExpressionKind::item, line, std::move(object), parse_number());
  auto attribute = make_expression(ExpressionKind::attribute, line, std::move(object));
  attribute->name = tokens_.expect_any_name();
  return finish(std::move(attribute));
}

ExpressionPtr ExpressionParser::parse_item(ExpressionPtr object) {
  const int line = tokens_.next().line;
  if (tokens_.at_symbol(":")) return parse_slice_rest(std::move(object), nullptr, line);
  ExpressionPtr key = parse();
  if (tokens_.at_symbol(":")) return parse_slice_rest(std::move(object), std::move(key), line);
  if (tokens_.at_symbol(",")) {
    auto tuple = make_expression(ExpressionKind::tuple, line, std::move(key));
    while (tokens_.skip_symbol(",") && !tokens_.at_symbol("]")) tuple->operands.push_back(parse());
    key = finish(std::move(tuple));
  }
  tokens_.expect_symbol("]");
  return make_finished(ExpressionKind::item, line, std::move(object), std::move(key));
}

// The current token is the first colon.
ExpressionPtr ExpressionParser::parse_slice_rest(ExpressionPtr object, ExpressionPtr start, int line) {
  ExpressionPtr bounds[2];
  for (ExpressionPtr& bound : bounds)
    if (tokens_.skip_symbol(":") && !tokens_.at_symbol(":") && !tokens_.at_symbol("]")) bound = parse();
  tokens_.expect_symbol("]");
  return make_finished(ExpressionKind::slice, line, std::move(object), std::move(start), std::move(bounds[0]),
                       std::move(bounds[1]));
}

std::vector<ArgumentSyntax> ExpressionParser::parse_arguments() {
  using Form = ArgumentSyntax::Form;
  std::vector<ArgumentSyntax> arguments;
  Form last = Form::positional;
  tokens_.expect_symbol("(");
  while (!tokens_.at_symbol(")")) {
    ArgumentSyntax argument;
    if (tokens_.skip_symbol("*")) {
      argument.form = Form::unpacked_list;
    } else if (tokens_.skip_symbol("**")) {
      argument.form = Form::unpacked_dict;
    } else if (tokens_.at(TokenKind::name) && tokens_.ahead().kind == TokenKind::symbol &&
               tokens_.ahead().text == "=") {
      argument.form = Form::named;
      argument.name = tokens_.next().text;
      tokens_.next();
    }
    const bool is_late = argument.form == Form::positional ? last != Form::positional : last == Form::unpacked_dict;
    if (is_late) tokens_.fail("an argument in the wrong place of a call");
    last = argument.form;
    argument.value = parse();
    arguments.push_back(std::move(argument));
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol(")");
  return arguments;
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  auto call = make_expression(ExpressionKind::call, tokens_.line(), std::move(callee));
  call->arguments = parse_arguments();
  return finish(std::move(call));
}

// The current token is the name of the filter.
ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  auto expression = make_expression(ExpressionKind::filter, tokens_.line(), std::move(input));
  std::string name = tokens_.expect_any_name();
  expression->filter = find_filter(name);
  if (expression->filter == nullptr) note_unknown(expression->line, "filter", *expression, std::move(name));
  if (tokens_.at_symbol("(")) expression->arguments = parse_arguments();
  return finish(std::move(expression));
}

ExpressionPtr ExpressionParser::parse_filters_of_block(bool optional) {
  ExpressionPtr filters;
  if (!optional) filters = parse_filter(nullptr);
  while (tokens_.skip_symbol("|")) filters = parse_filter(std::move(filters));
  require_known();
  return filters;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr subject) {
  const int line = tokens_.next().line;
  const bool negated = tokens_.skip_name("not");
  auto expression = make_expression(ExpressionKind::test, line, std::move(subject));
  std::string name = tokens_.expect_any_name();
  expression->test = find_test(name);
  if (expression->test == nullptr) note_unknown(line, "test", *expression, std::move(name));
  const Token& token = tokens_.current();
  const bool begins_argument = token.kind == TokenKind::name
                                   ? token.text != "else" && token.text != "or" && token.text != "and"
                                   : token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                                         token.kind == TokenKind::real || tokens_.at_symbol("[") ||
                                         tokens_.at_symbol("{");
  if (tokens_.at_symbol("(")) {
    expression->arguments = parse_arguments();
  } else if (begins_argument) {
    if (tokens_.at_name("is")) tokens_.fail("tests cannot be chained with 'is'");
    ArgumentSyntax argument;
    argument.value = parse_postfix(parse_primary());
    expression->arguments.push_back(std::move(argument));
  }
  ExpressionPtr test = finish(std::move(expression));
  return negated ? make_finished(ExpressionKind::logical_not, line, std::move(test)) : std::move(test);
}

Target ExpressionParser::parse_target_part(bool with_namespace) {
  const TokenStream::Level level(tokens_);
  Target target;
  target.line = tokens_.line();
  if (tokens_.skip_symbol("(")) {
    target = parse_target(with_namespace);
    tokens_.expect_symbol(")");
    return target;
  }
  target.name = tokens_.expect_any_name();
  constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), target.name) != std::end(kConstants))
    tokens_.fail("cannot assign to '{}'", target.name);
  if (with_namespace && tokens_.skip_symbol(".")) target.attribute = tokens_.expect_any_name();
  return target;
}

Target ExpressionParser::parse_target(bool with_namespace) {
  Target first = parse_target_part(with_namespace);
  if (!tokens_.at_symbol(",")) return first;
  Target target;
  target.line = first.line;
  target.is_unpacked = true;
  target.parts.push_back(std::move(first));
  while (tokens_.skip_symbol(",")) {
    if (tokens_.at_name("in") || tokens_.at_symbol("=") || tokens_.at_symbol(")")) break;
    target.parts.push_back(parse_target_part(with_namespace));
  }
  return target;
}

}  // namespace weft::jinja
