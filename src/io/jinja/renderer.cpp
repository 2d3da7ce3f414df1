#include "io/jinja/renderer.h"

#include "io/jinja/arithmetic.h"
#include "io/jinja/functions.h"
#include "io/jinja/iteration.h"
#include "io/jinja/macro.h"

namespace weft::jinja {

Renderer::Renderer(Runtime& runtime, const Dict& variables)
    : runtime_(runtime), budget_(runtime.budget()), variables_(variables), scope_(std::make_shared<Scope>()) {}

std::string Renderer::run(const Program& program) {
  Printer out(budget_);
  out_ = &out;
  render_block(program.body);
  return out.take();
}

Renderer::Flow Renderer::render_block(const Block& block) {
  for (const auto& statement : block) {
    const Flow flow = render(*statement);
    if (flow != Flow::finished) return flow;
  }
  return Flow::finished;
}

Renderer::Flow Renderer::render(const Statement& statement) {
  const Runtime::Level level(runtime_);
  budget_.step();
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::text:
      out_->append(statement.text);
      return Flow::finished;
    case StatementKind::output:
      out_->append_str(evaluate(*statement.expression));
      return Flow::finished;
    case StatementKind::if_chain:
      return render_if(statement);
    case StatementKind::for_loop:
      return render_for(statement);
    case StatementKind::set:
      assign(statement.target, evaluate(*statement.expression));
      return Flow::finished;
    case StatementKind::set_block:
      return render_set_block(statement);
    case StatementKind::with:
      return render_with(statement);
    case StatementKind::macro:
      declare(statement.macro->name, Value::object(runtime_.make<Macro>(*this, *statement.macro, scope_)));
      return Flow::finished;
    case StatementKind::call:
      render_call(statement);
      return Flow::finished;
    case StatementKind::filter:
      return render_filter(statement);
    case StatementKind::generation: {
      const ScopeGuard scope(*this);
      return render_block(statement.body);
    }
    case StatementKind::break_loop:
      return Flow::broken;
    case StatementKind::continue_loop:
      return Flow::continued;
  }
  return Flow::finished;
}

Renderer::Flow Renderer::render_if(const Statement& statement) {
  for (const Branch& branch : statement.branches)
    if (is_true(evaluate(*branch.condition))) return render_block(branch.body);
  return render_block(statement.otherwise);
}

Renderer::Flow Renderer::render_for(const Statement& statement) {
  return run_loop(statement, evaluate(*statement.expression), 0);
}

Renderer::Flow Renderer::run_loop(const Statement& statement, const Value& iterable, int depth) {
  const std::shared_ptr<Scope> outer = scope_;
  Loop::Accept accept;
  if (statement.condition != nullptr) {
    accept = [this, &statement, outer](const Value& item) {
      budget_.step();
      const ScopeGuard scope(*this, outer);
      assign(statement.target, item);
      return is_true(evaluate(*statement.condition));
    };
  }
  Loop::Recurse recurse;
  if (statement.is_recursive) {
    recurse = [this, &statement, outer](const Value& inner, int inner_depth) {
      const Runtime::Level level(runtime_);
      const ScopeGuard scope(*this, outer);
      Printer text(budget_);
      Printer* const around = std::exchange(out_, &text);
      run_loop(statement, inner, inner_depth);
      out_ = around;
      return Value::string(text.take());
    };
  }
  auto items = iterate(budget_, iterable);
  if (statement.uses_loop)
    return run_rounds(statement, *runtime_.make<Loop>(std::move(items), std::move(accept), std::move(recurse), depth));
  Loop loop(std::move(items), std::move(accept), std::move(recurse), depth);
  return run_rounds(statement, loop);
}

Renderer::Flow Renderer::run_rounds(const Statement& statement, Loop& loop) {
  bool finished_one = false;
  while (loop.advance()) {
    budget_.step();
    const ScopeGuard scope(*this);
    if (statement.uses_loop) declare("loop", Value::object(&loop));
    assign(statement.target, loop.current());
    const Flow flow = render_block(statement.body);
    if (flow == Flow::broken) break;
    finished_one = finished_one || flow == Flow::finished;
  }
  // Jinja records at the end of the body that an iteration took place. `break` and `continue` skip that, so after only
  // such iterations the else block runs too.
  if (finished_one) return Flow::finished;
  const ScopeGuard scope(*this);
  return render_block(statement.otherwise);
}

Renderer::Flow Renderer::render_with(const Statement& statement) {
  const std::vector<Value> values = evaluate_all(statement.expressions);
  const ScopeGuard scope(*this);
  for (std::size_t i = 0; i < values.size(); ++i) declare(statement.targets[i].name, values[i]);
  return render_block(statement.body);
}

Renderer::Flow Renderer::capture(const Block& block, std::string& text) {
  const ScopeGuard scope(*this);
  Printer captured(budget_);
  Printer* const around = std::exchange(out_, &captured);
  const Flow flow = render_block(block);
  out_ = around;
  text = captured.take();
  return flow;
}

Value Renderer::filter_text(const Expression* filters, std::string text) {
  Value value = Value::string(std::move(text));
  if (filters == nullptr) return value;
  block_text_ = std::move(value);
  return evaluate(*filters);
}

Renderer::Flow Renderer::render_set_block(const Statement& statement) {
  std::string text;
  const Flow flow = capture(statement.body, text);
  if (flow == Flow::finished) assign(statement.target, filter_text(statement.expression.get(), std::move(text)));
  return flow;
}

Renderer::Flow Renderer::render_filter(const Statement& statement) {
  std::string text;
  const Flow flow = capture(statement.body, text);
  if (flow == Flow::finished) out_->append_str(filter_text(statement.expression.get(), std::move(text)));
  return flow;
}

void Renderer::render_call(const Statement& statement) {
  const Value caller = Value::object(runtime_.make<Macro>(*this, *statement.macro, scope_));
  out_->append_str(evaluate_call(*statement.expression, &caller));
}

void Renderer::assign(const Target& target, const Value& value) {
  if (!target.is_unpacked) {
    if (target.attribute.empty()) {
      declare(target.name, value);
      return;
    }
    line_ = target.line;
    const Value holder = look_up(target.name);
    require_defined(holder);
    auto* space = holder.is(Kind::object) ? dynamic_cast<Namespace*>(holder.object()) : nullptr;
    if (space == nullptr) fail_template("cannot assign attribute on non-namespace object");
    space->set(target.attribute, value);
    return;
  }
  require_defined(value);
  const auto items = iterate(budget_, value);
  if (items->size() != target.parts.size())
    fail_template("{} values to unpack into {} variables", items->size(), target.parts.size());
  for (std::size_t i = 0; i < items->size(); ++i) assign(target.parts[i], (*items)[i]);
}

void Renderer::declare(std::string_view name, Value value) {
  for (auto& [known, old] : scope_->variables) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  scope_->variables.emplace_back(name, std::move(value));
}

Value Renderer::look_up(const std::string& name) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get())
    for (const auto& [known, value] : scope->variables)
      if (known == name) return value;
  if (const Value* value = variables_.find(name)) return *value;
  const auto [function, is_new] = functions_.try_emplace(name);
  if (is_new) function->second = find_function(runtime_, name);
  return function->second.is_undefined() ? Value::undefined("'" + name + "' is undefined") : function->second;
}

}  // namespace weft::jinja
