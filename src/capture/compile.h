#pragma once

// compile() returns a compiled version of a function of Values; its results are the same.
//
//   Value mlp(Value x, Value up, Value down) { return linear(silu(linear(x, up)), down); }
//
//   auto fast = compile(context, mlp);
//   fast.mark_dynamic(0, 0, {"tokens", 1, 512});
//   Value y = fast(x, up, down);
//
// Arguments and results may be Values, numbers, texts, and everything that arguments.h walks through; a result type
// must be default-constructible and copyable. The function is traced at the first call. If it never reads what a Value
// holds (ir/reading.h), it must be a pure function of its arguments: later calls whose arguments pass the guards do not
// run its C++ code again. If it does read, its C++ code runs in each call, side effects included, and the ops between
// the reads are compiled.
//
// A Context may compute in one thread at a time. Calls of one compiled function lock it by themselves; the caller must
// serialize calls of several functions, and plain calls of ops.
//
// The function may run more than once while it is compiled. Tensors other than its arguments enter through
// home().value(tensor); later calls use the tensor of the first trace, unless there are graph breaks.

#include <functional>
#include <type_traits>
#include <variant>

#include "capture/captured_function.h"

namespace weft {

// Thread-safe: calls wait for each other. The caller owns the result, or the result aliases the arguments.
template <class Result, class... Arguments>
class CompiledFunction {
 public:
  CompiledFunction(std::shared_ptr<const Context> context, std::function<Result(Arguments...)> function,
                   CompileOptions options, std::source_location where)
      : function_(std::move(function)), captured_(std::move(context), std::move(options), where) {}

  // The arguments' Values must be concrete and of one home, which is also the home of the result; or they are being
  // traced, and then the function is called directly. UserError for a size outside its marked range, for a call from
  // within the function, and where the function does something with Values that cannot be compiled; nothing of such a
  // call is kept. The error names the line of the op or the read, or else `site`; through a std::function that is a
  // line of the library. Errors of the function itself are passed on; a UserError without a line gets `site`.
  Result operator()(const std::decay_t<Arguments>&... arguments, CallSite site = CallSite::current()) {
    return placed_at(site, [&]() -> Result { return call(arguments...); });
  }

  // Traces and compiles for arguments like these in advance. A function that reads what Values hold is run in full.
  void prepare(const std::decay_t<Arguments>&... examples, CallSite site = CallSite::current()) {
    placed_at(site, [&] {
      const CapturedFunction::CallLock lock(captured_);
      Run run(*this, examples...);
      captured_.prepare(run.leaves, run);
    });
  }

  // Call this before the first call. `argument` is the index of the argument, from 0; within a larger one, "2.0" is the
  // first part of the third. UserError as DynamicDims::mark.
  void mark_dynamic(int argument, int dim, const DynamicDim& range, CallSite site = CallSite::current()) {
    mark_dynamic(std::to_string(argument), dim, range, site);
  }
  void mark_dynamic(const std::string& argument, int dim, const DynamicDim& range,
                    CallSite site = CallSite::current()) {
    placed_at(site, [&] { captured_.mark_dynamic(argument, dim, range, DynamicShapes::backed); });
  }
  // The same for an unbacked size: a branch may depend on it only where its range decides (DynamicShapes::unbacked).
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
    const CapturedFunction::CallLock lock(captured_);
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
  std::vector<Leaf> leaves_;  // of the current call
  std::vector<Kept> kept_;    // by entry: the function's result when it was traced
};

template <class Function>
struct CompiledOf;
template <class Result, class... Arguments>
struct CompiledOf<std::function<Result(Arguments...)>> {
  using type = CompiledFunction<Result, Arguments...>;
};

// Typed op functions have the caller's CallSite as their last parameter; it is not an argument of the compiled
// function.
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

// `function` is a function, or an object with one call operator. Nothing is traced before the first call or prepare().
template <class Function>
auto compile(std::shared_ptr<const Context> context, Function function, CompileOptions options = {},
             CallSite where = CallSite::current()) {
  auto plain = without_site(std::move(function));
  return placed_at(where, [&] {
    return typename CompiledOf<decltype(plain)>::type(std::move(context), std::move(plain), std::move(options), where);
  });
}

}  // namespace weft
