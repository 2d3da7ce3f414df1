#include "io/jinja/expression_parser.h"

#include <optional>

#include "io/jinja/expression_builder.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

ExpressionPtr make_calculation(Operator operation, ExpressionPtr left, ExpressionPtr right, int line) {
  auto expression = make_expression(ExpressionKind::calculation, line, std::move(left), std::move(right));
  expression->operators.push_back(operation);
  return finish(std::move(expression));
}

struct SymbolOperator {
  std::string_view symbol;
  Operator operation;
};

constexpr SymbolOperator kSums[] = {{"+", Operator::add}, {"-", Operator::subtract}};
constexpr SymbolOperator kProducts[] = {
    {"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}};
constexpr SymbolOperator kComparisons[] = {{"==", Operator::equal},  {"!=", Operator::not_equal},
                                           {"<", Operator::less},    {"<=", Operator::less_equal},
                                           {">", Operator::greater}, {">=", Operator::greater_equal}};

template <std::size_t count>
std::optional<Operator> skip_operator(TokenStream& tokens, const SymbolOperator (&operators)[count]) {
  if (!tokens.at(TokenKind::symbol)) return std::nullopt;
  for (const auto& [symbol, operation] : operators)
    if (tokens.skip_symbol(symbol)) return operation;
  return std::nullopt;
}

}  // namespace

ExpressionPtr ExpressionParser::parse(bool with_condition) {
  const TokenStream::Level level(tokens_);
  const std::optional<Unknown> before = unknown_;
  ++depth_;
  ExpressionPtr expression = parse_or();
  while (with_condition && tokens_.at_name("if")) {
    const int line = tokens_.line();
    tokens_.next();
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? parse() : nullptr;
    expression = make_finished(ExpressionKind::conditional, line, std::move(expression), std::move(condition),
                               std::move(otherwise));
    unknown_ = before;
  }
  if (--depth_ == 0) require_known();
  return expression;
}

void ExpressionParser::note_unknown(int line, std::string_view kind, Expression& expression, std::string name) {
  if (!unknown_) unknown_ = {line, fmt::format("unknown {} {}", kind, quote(name))};
  expression.name = std::move(name);
}

void ExpressionParser::require_known() {
  const std::optional<Unknown> unknown = std::exchange(unknown_, std::nullopt);
  if (unknown && !in_branch_) TokenStream::fail_at(unknown->line, unknown->text);
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (tokens_.at_name("or")) {
    const int line = tokens_.next().line;
    left = make_finished(ExpressionKind::logical_or, line, std::move(left), parse_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (tokens_.at_name("and")) {
    const int line = tokens_.next().line;
    left = make_finished(ExpressionKind::logical_and, line, std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) return parse_comparison();
  const TokenStream::Level level(tokens_);
  const int line = tokens_.next().line;
  return make_finished(ExpressionKind::logical_not, line, parse_not());
}

ExpressionPtr ExpressionParser::parse_comparison() {
  auto comparison = make_expression(ExpressionKind::comparison, tokens_.line(), parse_sum());
  for (;;) {
    if (const auto operation = skip_operator(tokens_, kComparisons)) {
      comparison->operators.push_back(*operation);
    } else if (tokens_.skip_name("in")) {
      comparison->operators.push_back(Operator::contained);
    } else if (tokens_.at_name("not") && tokens_.ahead().kind == TokenKind::name && tokens_.ahead().text == "in") {
      tokens_.next();
      tokens_.next();
      comparison->operators.push_back(Operator::not_contained);
    } else {
      break;
    }
    comparison->operands.push_back(parse_sum());
  }
  if (comparison->operators.empty()) return std::move(comparison->operands[0]);
  return finish(std::move(comparison));
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  for (;;) {
    const int line = tokens_.line();
    const auto operation = skip_operator(tokens_, kSums);
    if (!operation) return left;
    left = make_calculation(*operation, std::move(left), parse_concatenation(), line);
  }
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  auto joined = make_expression(ExpressionKind::concatenation, tokens_.line(), parse_product());
  while (tokens_.skip_symbol("~")) joined->operands.push_back(parse_product());
  if (joined->operands.size() == 1) return std::move(joined->operands[0]);
  return finish(std::move(joined));
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  for (;;) {
    const int line = tokens_.line();
    const auto operation = skip_operator(tokens_, kProducts);
    if (!operation) return left;
    left = make_calculation(*operation, std::move(left), parse_power(), line);
  }
}

// Unlike in Python, powers are left-associative in Jinja and a sign binds more tightly.
ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary(true);
  while (tokens_.at_symbol("**")) {
    const int line = tokens_.next().line;
    left = make_calculation(Operator::power, std::move(left), parse_unary(true), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  ExpressionPtr expression;
  if (tokens_.at_symbol("-") || tokens_.at_symbol("+")) {
    const TokenStream::Level level(tokens_);
    const Token sign = tokens_.next();
    const auto kind = sign.text == "-" ? ExpressionKind::negative : ExpressionKind::positive;
    expression = make_finished(kind, sign.line, parse_unary(false));
  } else {
    expression = parse_primary();
  }
  expression = parse_postfix(std::move(expression));
  return with_filters ? parse_filters(std::move(expression)) : std::move(expression);
}

}  // namespace weft::jinja
