#pragma once

// compile(): a function of Values that gives what the function gives, compiled.
//
//   Value mlp(Value x, Value up, Value down) { return linear(silu(linear(x, up)), down); }
//
//   auto fast = compile(context, mlp);
//   fast.mark_dynamic(0, 0, {"tokens", 1, 512});
//   Value y = fast(x, up, down);
//
// The function may take and give Values, numbers, texts, and what arguments.h walks through; what it gives can be made
// empty and copied. It is traced at the first call. As long as it never asks what a Value holds (ir/reading.h) it has
// to be a pure function of its arguments: later calls whose arguments pass the guards do not run its C++ code again.
// Where it does ask, its code runs in every call, side effects included, and what it does to Values between the
// questions is compiled.
//
// One Context computes in one thread at a time. Calls of one compiled function take turns by themselves; those of
// several, and plain calls of ops beside them, are for their callers to order.
//
// The function may be run more than once when it is compiled. What it brings with it besides its arguments enters
// through home().value(tensor); such a tensor is the one that the first trace saw, unless there are graph breaks.

#include <functional>
#include <type_traits>
#include <variant>

#include "capture/captured_function.h"

namespace weft {

// Called by several threads they take turns. What it returns is owned by the caller, or looks into the arguments.
template <class Result, class... Arguments>
class CompiledFunction {
 public:
  CompiledFunction(std::shared_ptr<const Context> context, std::function<Result(Arguments...)> function,
                   CompileOptions options, std::source_location where)
      : function_(std::move(function)), captured_(std::move(context), std::move(options), where) {}

  // The arguments' Values are concrete and of one home, which is that of the result; or they are being traced, and then
  // the function is called as it is. UserError for a size out of the range it was marked with, a call from within the
  // function, and for what the function does with Values that cannot be compiled; nothing is kept of that. It names the
  // line of the op or question it is about, else `site`; through a std::function that is a line of the library's.
  // Errors of the function itself come through, a UserError without a line with `site`.
  Result operator()(const std::decay_t<Arguments>&... arguments, CallSite site = CallSite::current()) {
    return placed_at(site, [&]() -> Result { return call(arguments...); });
  }

  // Traces and compiles for arguments like these, so that a call finds it done. A function that asks what Values hold
  // is run by it.
  void prepare(const std::decay_t<Arguments>&... examples, CallSite site = CallSite::current()) {
    placed_at(site, [&] {
      const CapturedFunction::Turn turn(captured_);
      Run run(*this, examples...);
      captured_.prepare(run.leaves, run);
    });
  }

  // Before the first call. `argument`: the number of the argument, from 0; within a larger one "2.0" is the first part
  // of the third. UserError as DynamicDims::mark.
  void mark_dynamic(int argument, int dim, const DynamicDim& range, CallSite site = CallSite::current()) {
    mark_dynamic(std::to_string(argument), dim, range, site);
  }
  void mark_dynamic(const std::string& argument, int dim, const DynamicDim& range,
                    CallSite site = CallSite::current()) {
    placed_at(site, [&] { captured_.mark_dynamic(argument, dim, range, DynamicShapes::backed); });
  }
  // The same for a size that no branch depends on, but where its range decides alone (DynamicShapes::unbacked).
  void mark_unbacked(int argument, int dim, const DynamicDim& range, CallSite site = CallSite::current()) {
    mark_unbacked(std::to_string(argument), dim, range, site);
  }
  void mark_unbacked(const std::string& argument, int dim, const DynamicDim& range,
                     CallSite site = CallSite::current()) {
    placed_at(site, [&] { captured_.mark_dynamic(argument, dim, range, DynamicShapes::unbacked); });
  }

  const CapturedFunction& captured() const { return captured_; }

 private:
  using Kept = std::conditional_t<std::is_void_v<Result>, std::monostate, std::decay_t<Result>>;

  Result call(const std::decay_t<Arguments>&... arguments) {
    const CapturedFunction::Turn turn(captured_);
    Run run(*this, arguments...);
    if (run.is_traced()) return function_(arguments...);
    const CapturedFunction::Outcome outcome = captured_.call(run.leaves, run);
    if constexpr (!std::is_void_v<Result>) {
      Kept result = outcome.entry ? kept_[*outcome.entry] : std::move(run.last);
      if (outcome.values) {
        ValueReplacer replacer(*outcome.values);
        walk(replacer, result);
      }
      return result;
    }
  }

  struct Run final : FunctionRun {
    Run(CompiledFunction& compiled, const std::decay_t<Arguments>&... given) : compiled(compiled), arguments(given...) {
      compiled.leaves_.clear();
      LeafReader reader(compiled.leaves_);
      walk_arguments(reader);
      leaves = compiled.leaves_;
    }

    bool is_traced() const {
      for (const Leaf& leaf : leaves)
        if (leaf.kind == Leaf::Kind::tensor && !leaf.value->has_data()) return true;
      return false;
    }

    Values run(std::span<const Value> values) override {
      std::tuple<std::decay_t<Arguments>...> replaced = arguments;
      ValueReplacer replacer(values);
      std::apply([&](auto&... parts) { (walk(replacer, parts), ...); }, replaced);
      ValueReader results;
      if constexpr (std::is_void_v<Result>) {
        std::apply(compiled.function_, std::move(replaced));
      } else {
        last = std::apply(compiled.function_, std::move(replaced));
        walk(results, last);
      }
      return std::move(results.values);
    }

    void keep(std::size_t entry) override {
      compiled.kept_.resize(std::max(compiled.kept_.size(), entry + 1));
      compiled.kept_[entry] = last;
    }

    std::vector<std::string> names() const override {
      LeafNamer namer;
      walk_arguments(namer);
      return std::move(namer.names);
    }

    template <class Visitor>
    void walk_arguments(Visitor& visitor) const {
      std::apply([&](auto&... parts) { walking::walk_each(visitor, parts...); }, arguments);
    }

    CompiledFunction& compiled;
    std::tuple<const std::decay_t<Arguments>&...> arguments;
    std::span<const Leaf> leaves;
    Kept last{};
  };

  std::function<Result(Arguments...)> function_;
  CapturedFunction captured_;
  std::vector<Leaf> leaves_;  // of the call that has its turn
  std::vector<Kept> kept_;    // by entry: what the function returned when it was traced
};

template <class Function>
struct CompiledOf;
template <class Result, class... Arguments>
struct CompiledOf<std::function<Result(Arguments...)>> {
  using type = CompiledFunction<Result, Arguments...>;
};

// Typed op functions take their caller's place behind their arguments, which is no argument of what is compiled.
template <class Result, class... Parameters>
requires(std::is_same_v<std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>,
                        CallSite>) auto without_site(Result (*op)(Parameters...)) {
  return [op]<std::size_t... place>(std::index_sequence<place...>) {
    using All = std::tuple<Parameters...>;
    return std::function<Result(std::tuple_element_t<place, All>...)>(
        [op](std::tuple_element_t<place, All>... arguments) {
          return op(std::move(arguments)..., CallSite::current());
        });
  }
  (std::make_index_sequence<sizeof...(Parameters) - 1>());
}
template <class Function>
auto without_site(Function function) {
  return std::function(std::move(function));
}

// `function` is anything with one call operator, or a function. Nothing is traced before the first call or prepare().
template <class Function>
auto compile(std::shared_ptr<const Context> context, Function function, CompileOptions options = {},
             CallSite where = CallSite::current()) {
  auto plain = without_site(std::move(function));
  return placed_at(where, [&] {
    return typename CompiledOf<decltype(plain)>::type(std::move(context), std::move(plain), std::move(options), where);
  });
}

}  // namespace weft
