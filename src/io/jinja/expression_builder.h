#pragma once

// Builds expression trees and keeps them from nesting too deep.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "io/jinja/syntax.h"
#include "io/jinja/token_stream.h"

namespace weft::jinja {

template <class... Operands>
std::unique_ptr<Expression> make_expression(ExpressionKind kind, int line, Operands... operands) {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->line = line;
  (expression->operands.push_back(std::move(operands)), ...);
  return expression;
}

inline int argument_depth(const std::vector<ArgumentSyntax>& arguments) {
  int depth = 0;
  for (const auto& argument : arguments) depth = std::max(depth, argument.value->depth);
  return depth;
}

// Sets the depth, also for long chains such as a + b + c, which nest to the left without recursion in the parser.
// Throws UserError above kMaxNesting.
inline ExpressionPtr finish(std::unique_ptr<Expression> expression) {
  int depth = argument_depth(expression->arguments);
  for (const auto& operand : expression->operands)
    if (operand != nullptr) depth = std::max(depth, operand->depth);
  expression->depth = depth + 1;
  if (expression->depth > kMaxNesting)
    TokenStream::fail_at(expression->line, fmt::format("an expression nested more than {} deep", kMaxNesting));
  return expression;
}

template <class... Operands>
ExpressionPtr make_finished(ExpressionKind kind, int line, Operands... operands) {
  return finish(make_expression(kind, line, std::move(operands)...));
}

inline ExpressionPtr make_constant(int line, Value value) {
  auto expression = make_expression(ExpressionKind::constant, line);
  expression->value = std::move(value);
  return finish(std::move(expression));
}

}  // namespace weft::jinja
