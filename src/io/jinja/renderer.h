#pragma once

// Runs a parsed template once.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja/loop.h"
#include "io/jinja/printer.h"
#include "io/jinja/runtime.h"
#include "io/jinja/syntax.h"

namespace weft::jinja {

// The variables of one block. Loops, macros, and `with`, `call`, `filter` and `generation` blocks open a scope; `if`
// does not. A macro keeps the scope in which it was defined.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
};

class Renderer {
 public:
  // Both arguments must outlive the renderer.
  Renderer(Runtime& runtime, const Dict& variables);

  // Throws TemplateFailure; line() then returns the line of the failure.
  std::string run(const Program& program);
  int line() const { return line_; }

 private:
  friend class Macro;

  // How the execution of a block ended.
  enum class Flow { finished, broken, continued };

  Flow render_block(const Block& block);
  Flow render(const Statement& statement);
  Flow render_if(const Statement& statement);
  Flow render_for(const Statement& statement);
  Flow run_loop(const Statement& statement, const Value& iterable, int depth);
  Flow run_rounds(const Statement& statement, Loop& loop);
  Flow render_with(const Statement& statement);
  Flow render_set_block(const Statement& statement);
  Flow render_filter(const Statement& statement);
  void render_call(const Statement& statement);

  // Runs the block in its own scope and appends its output to `text`.
  Flow capture(const Block& block, std::string& text);
  Value filter_text(const Expression* filters, std::string text);

  void assign(const Target& target, const Value& value);
  void declare(std::string_view name, Value value);
  Value look_up(const std::string& name);

  Value evaluate(const Expression& expression);
  Value evaluate_attribute(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller);
  Value evaluate_filter(const Expression& expression);
  bool evaluate_test(const Expression& expression);
  Value evaluate_calculation(const Expression& expression);
  bool evaluate_comparison(const Expression& expression);
  Value evaluate_concatenation(const Expression& expression);
  Value evaluate_conditional(const Expression& expression);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& expressions);
  Arguments evaluate_arguments(const std::vector<ArgumentSyntax>& arguments);
  void unpack_dict(const Value& dict, Arguments& arguments);

  Value call_macro(const MacroSyntax& macro, const std::shared_ptr<Scope>& closure, const Arguments& arguments);
  void bind_parameters(const MacroSyntax& macro, const Arguments& arguments);

  // Opens a scope for its lifetime.
  class ScopeGuard;

  Runtime& runtime_;
  Budget& budget_;
  const Dict& variables_;
  std::map<std::string, Value, std::less<>> functions_;
  std::shared_ptr<Scope> scope_;
  Printer* out_ = nullptr;
  Value block_text_;  // the input of a filter without an operand
  int line_ = 1;
};

class Renderer::ScopeGuard {
 public:
  ScopeGuard(Renderer& renderer, std::shared_ptr<Scope> parent)
      : renderer_(renderer), outer_(std::exchange(renderer.scope_, nullptr)) {
    renderer.scope_ = std::make_shared<Scope>(Scope{std::move(parent), {}});
  }
  explicit ScopeGuard(Renderer& renderer) : ScopeGuard(renderer, renderer.scope_) {}
  ~ScopeGuard() { renderer_.scope_ = std::move(outer_); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Renderer& renderer_;
  std::shared_ptr<Scope> outer_;
};

}  // namespace weft::jinja
