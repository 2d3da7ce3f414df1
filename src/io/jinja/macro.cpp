#include "io/jinja/macro.h"

#include <algorithm>

#include "io/jinja/text.h"

namespace weft::jinja {

void Macro::print(Printer& printer) const {
  printer.append("<Macro ");
  printer.append(quote(syntax_.name));
  printer.append(">");
}

std::optional<Value> Macro::attribute(Runtime& runtime, std::string_view name) {
  if (name == "name") return Value::string(syntax_.name);
  if (name == "catch_kwargs") return Value::boolean(syntax_.uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(syntax_.uses_varargs);
  if (name == "caller") return Value::boolean(syntax_.uses_caller);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const Parameter& parameter : syntax_.parameters) names.push_back(Value::string(parameter.name));
  return make_sequence(runtime.budget(), Kind::tuple, std::move(names));
}

Value Macro::call(Runtime&, const Arguments& arguments) { return renderer_.call_macro(syntax_, closure_, arguments); }

Value Renderer::call_macro(const MacroSyntax& macro, const std::shared_ptr<Scope>& closure,
                           const Arguments& arguments) {
  const Runtime::Level level(runtime_);
  const ScopeGuard scope(*this, closure);
  bind_parameters(macro, arguments);
  std::string text;
  capture(macro.body, text);
  return make_string(budget_, std::move(text));
}

void Renderer::bind_parameters(const MacroSyntax& macro, const Arguments& arguments) {
  const auto& parameters = macro.parameters;
  const std::size_t given = std::min(arguments.positional.size(), parameters.size());
  std::vector<bool> used(arguments.named.size(), false);
  const auto take_named = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < arguments.named.size(); ++i) {
      if (used[i] || arguments.named[i].first != name) continue;
      used[i] = true;
      return &arguments.named[i].second;
    }
    return nullptr;
  };
  bool has_caller = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    has_caller = has_caller || parameter.name == "caller";
    const Value* value = i < given ? &arguments.positional[i] : take_named(parameter.name);
    if (value != nullptr) {
      declare(parameter.name, *value);
    } else if (parameter.otherwise != nullptr) {
      declare(parameter.name, evaluate(*parameter.otherwise));
    } else {
      declare(parameter.name, Value::undefined("parameter '" + parameter.name + "' was not provided"));
    }
  }
  if (macro.uses_caller && !has_caller) {
    const Value* caller = take_named("caller");
    declare("caller", caller != nullptr ? *caller : Value::undefined("No caller defined"));
  }
  Dict rest;
  for (std::size_t i = 0; i < arguments.named.size(); ++i)
    if (!used[i]) rest.set(Value::string(arguments.named[i].first), arguments.named[i].second);
  if (!macro.uses_kwargs && rest.size() > 0)
    fail_template("macro {} takes no keyword argument {}", quote(macro.name), quote(rest.entries()[0].key.text()));
  if (!macro.uses_varargs && arguments.positional.size() > parameters.size())
    fail_template("macro {} takes not more than {} argument(s)", quote(macro.name), parameters.size());
  if (macro.uses_kwargs) declare("kwargs", make_dict(budget_, std::move(rest)));
  if (macro.uses_varargs) {
    std::vector<Value> others(arguments.positional.begin() + static_cast<std::ptrdiff_t>(given),
                              arguments.positional.end());
    declare("varargs", make_sequence(budget_, Kind::tuple, std::move(others)));
  }
}

}  // namespace weft::jinja
