// The part of the renderer that evaluates expressions.

#include "io/jinja/arithmetic.h"
#include "io/jinja/comparison.h"
#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/methods.h"
#include "io/jinja/renderer.h"
#include "io/jinja/tests.h"
#include "io/jinja/text.h"

namespace weft::jinja {

Value Renderer::evaluate(const Expression& expression) {
  const Runtime::Level level(runtime_);
  budget_.step();
  line_ = expression.line;
  const auto operand = [&](std::size_t place) { return evaluate(*expression.operands[place]); };
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.value;
    case ExpressionKind::variable:
      return look_up(expression.name);
    case ExpressionKind::list:
      return make_list(budget_, evaluate_all(expression.operands));
    case ExpressionKind::tuple:
      return make_sequence(budget_, Kind::tuple, evaluate_all(expression.operands));
    case ExpressionKind::dict:
      return evaluate_dict(expression);
    case ExpressionKind::attribute:
    case ExpressionKind::item:
      return evaluate_attribute(expression);
    case ExpressionKind::slice:
      return evaluate_slice(expression);
    case ExpressionKind::call:
      return evaluate_call(expression, nullptr);
    case ExpressionKind::filter:
      return evaluate_filter(expression);
    case ExpressionKind::test:
      return Value::boolean(evaluate_test(expression));
    case ExpressionKind::negative:
      return negate(operand(0));
    case ExpressionKind::positive:
      return keep_sign(operand(0));
    case ExpressionKind::logical_not:
      return Value::boolean(!is_true(operand(0)));
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: {
      Value left = operand(0);
      return is_true(left) == (expression.kind == ExpressionKind::logical_or) ? left : operand(1);
    }
    case ExpressionKind::calculation:
      return evaluate_calculation(expression);
    case ExpressionKind::comparison:
      return Value::boolean(evaluate_comparison(expression));
    case ExpressionKind::concatenation:
      return evaluate_concatenation(expression);
    case ExpressionKind::conditional:
      return evaluate_conditional(expression);
  }
  return {};
}

std::vector<Value> Renderer::evaluate_all(const std::vector<ExpressionPtr>& expressions) {
  std::vector<Value> values;
  values.reserve(expressions.size());
  for (const auto& expression : expressions) values.push_back(evaluate(*expression));
  return values;
}

Value Renderer::evaluate_dict(const Expression& expression) {
  Dict dict;
  for (std::size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
    Value key = evaluate(*expression.operands[i]);
    Value value = evaluate(*expression.operands[i + 1]);
    budget_.step(key.weight());
    dict.set(std::move(key), std::move(value));
  }
  return make_dict(budget_, std::move(dict));
}

// Evaluates `a.b` and `a[b]`.
Value Renderer::evaluate_attribute(const Expression& expression) {
  const Value object = evaluate(*expression.operands[0]);
  if (expression.kind == ExpressionKind::attribute) {
    line_ = expression.line;
    return runtime_.attribute(object, expression.name);
  }
  const Value key = evaluate(*expression.operands[1]);
  line_ = expression.line;
  return runtime_.item(object, key);
}

Value Renderer::evaluate_slice(const Expression& expression) {
  const Value object = evaluate(*expression.operands[0]);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& bound = expression.operands[i + 1];
    bounds[i] = bound == nullptr ? Value::none() : evaluate(*bound);
  }
  line_ = expression.line;
  return runtime_.slice(object, bounds[0], bounds[1], bounds[2]);
}

void Renderer::unpack_dict(const Value& dict, Arguments& arguments) {
  if (!dict.is_dict()) fail_template("argument after ** must be a mapping, not {}", type_name(dict));
  for (const auto& [key, value] : dict.dict().entries()) {
    if (!key.is_string()) fail_template("keywords must be strings");
    arguments.named.emplace_back(key.text(), value);
  }
}

Arguments Renderer::evaluate_arguments(const std::vector<ArgumentSyntax>& syntax) {
  using Form = ArgumentSyntax::Form;
  Arguments arguments;
  for (const ArgumentSyntax& argument : syntax) {
    Value value = evaluate(*argument.value);
    if (argument.form == Form::positional) {
      arguments.positional.push_back(std::move(value));
    } else if (argument.form == Form::named) {
      arguments.named.emplace_back(argument.name, std::move(value));
    } else if (argument.form == Form::unpacked_dict) {
      unpack_dict(value, arguments);
    } else {
      const auto items = iterate(budget_, value);
      budget_.allocate(items->size() * sizeof(Value));
      arguments.positional.insert(arguments.positional.end(), items->begin(), items->end());
    }
  }
  return arguments;
}

Value Renderer::evaluate_call(const Expression& expression, const Value* caller) {
  const Expression& callee = *expression.operands[0];
  // A method that is called immediately needs no method object.
  const bool is_attribute = callee.kind == ExpressionKind::attribute;
  const Value target = evaluate(is_attribute ? *callee.operands[0] : callee);
  const Method* method = is_attribute ? find_method(target, callee.name) : nullptr;
  Value function;
  if (method == nullptr) {
    line_ = expression.line;
    function = is_attribute ? runtime_.attribute(target, callee.name) : target;
    require_defined(function);
  }
  Arguments arguments = evaluate_arguments(expression.arguments);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  line_ = expression.line;
  return method != nullptr ? method->call(runtime_, target, arguments) : runtime_.call(function, arguments);
}

Value Renderer::evaluate_filter(const Expression& expression) {
  const auto& operand = expression.operands[0];
  const Value input = operand == nullptr ? std::exchange(block_text_, Value()) : evaluate(*operand);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  line_ = expression.line;
  if (expression.filter == nullptr) throw TemplateFailure(fmt::format("unknown filter {}", quote(expression.name)));
  return expression.filter->apply(runtime_, input, arguments);
}

bool Renderer::evaluate_test(const Expression& expression) {
  const Value value = evaluate(*expression.operands[0]);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  line_ = expression.line;
  if (expression.test == nullptr) throw TemplateFailure(fmt::format("unknown test {}", quote(expression.name)));
  return expression.test->holds(runtime_, value, arguments);
}

Value Renderer::evaluate_calculation(const Expression& expression) {
  const Value left = evaluate(*expression.operands[0]);
  const Value right = evaluate(*expression.operands[1]);
  line_ = expression.line;
  return calculate(budget_, expression.operators[0], left, right);
}

// Evaluates a chain such as a < b < c, with each operand evaluated at most once.
bool Renderer::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.operands[0]);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1]);
    line_ = expression.line;
    if (!compare(budget_, expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Renderer::evaluate_concatenation(const Expression& expression) {
  Printer text(budget_);
  for (const auto& operand : expression.operands) text.append_str(evaluate(*operand));
  return Value::string(text.take());
}

Value Renderer::evaluate_conditional(const Expression& expression) {
  if (is_true(evaluate(*expression.operands[1]))) return evaluate(*expression.operands[0]);
  if (expression.operands[2] != nullptr) return evaluate(*expression.operands[2]);
  return Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
}

}  // namespace weft::jinja
