#pragma once

// Functions of one's own over Weft's ops, compiled. docs/capture.md walks through it. In a program outside this tree it
// comes with CMake's find_package(weft) and the target weft::compile.
//
//   weft::Compiler compiler;
//   auto fast = compiler.compile(mlp);
//   weft::Value y = fast(x, up, down);
//
// Values and their ops: ir/value.h, ops/*.h. What a function may ask of them: ir/reading.h. What it may take and give:
// capture/arguments.h. Errors are weft::UserError where the caller is wrong, DeviceError where memory or a device is,
// InternalError where Weft is (base/error.h).

#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "builtin/context.h"
#include "capture/compile.h"
#include "capture/run_eagerly.h"
#include "compiler/eager.h"
#include "ir/reading.h"
#include "ops/all.h"

namespace weft {

// What the environment says, such as WEFT_LOGS; UserError where that is no option.
inline Options environment_options() {
  Options options;
  apply_environment(options, process_environment());
  return options;
}

// A home for concrete Values, on which ops run at once, and what compiles functions of them. For one thread at a time;
// it must outlive its Values and the functions that it compiled.
class Compiler {
 public:
  // The options of the command line, by their fields: mode and backend are cc.mode and cc.backend. UserError as
  // open_context, and for another device than the CPU.
  explicit Compiler(Options options = environment_options())
      : requested_(std::move(options)),
        opened_(open_context(requested_)),
        home_(*opened_.context, {1, opened_.context->options.max_num_batched_tokens}) {
    check_is_for_cpu(*opened_.context);
  }

  const std::shared_ptr<Context>& context() const { return opened_.context; }
  // Sentences about the options, for whoever gave them, those of single functions included.
  const std::vector<std::string>& notes() const { return opened_.notes; }

  Value value(Tensor tensor) { return home_.value(std::move(tensor)); }
  // An f32 tensor, row-major. UserError where the shape holds another count of numbers.
  Value value(const Shape& shape, const std::vector<float>& numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    USER_CHECK(element_count(shape) == Dim(count), "[value] wanted {} numbers for {}, but came {}",
               element_count(shape).text(), shape_text(shape), count);
    return value(Tensor::from_bytes(Meta::tensor(DType::f32, shape), numbers.data()));
  }

  // capture/compile.h says what it gives. UserError for an option that there is not. A function's own options hold for
  // what is compiled; calls that run op by op, as with mode none, are computed as the Compiler's.
  template <class Function>
  auto compile(Function function, CompileOptions options = {}, CallSite where = CallSite::current()) {
    const std::shared_ptr<Context> context = placed_at(where, [&] { return context_for(options); });
    options.mode.clear();
    options.backend.clear();
    options.options.clear();
    return weft::compile(context, std::move(function), std::move(options), where);
  }

 private:
  std::shared_ptr<Context> context_for(const CompileOptions& wanted) {
    if (!wanted.wants_own_context()) return opened_.context;
    const std::string source = "compile()";
    Options options = requested_;
    if (!wanted.mode.empty()) set_option(options, "cc.mode", wanted.mode, source);
    if (!wanted.backend.empty()) set_option(options, "cc.backend", wanted.backend, source);
    for (const auto& [name, text] : wanted.options) set_option(options, name, text, source);
    for (const auto& [known, context] : others_)
      if (known == options) return context;
    OpenedContext opened = open_context(options);
    opened_.notes.insert(opened_.notes.end(), opened.notes.begin(), opened.notes.end());
    return others_.emplace_back(std::move(options), opened.context).second;
  }

  Options requested_;
  OpenedContext opened_;
  EagerEvaluator home_;
  std::vector<std::pair<Options, std::shared_ptr<Context>>> others_;  // of functions with options of their own
};

}  // namespace weft
