#pragma once

// This header compiles a user's functions over Weft's ops. docs/capture.md explains it step by step. A program outside
// this tree uses CMake's find_package(weft) and links the target weft::compile.
//
//   weft::Compiler compiler;
//   auto fast = compiler.compile(mlp);
//   weft::Value y = fast(x, up, down);
//
// Values and their ops are in ir/value.h and ops/*.h. A function reads Values with ir/reading.h. capture/arguments.h
// lists the argument and result types of a function. Errors are weft::UserError for a caller's mistake, DeviceError for
// a failure of memory or a device, and InternalError for a mistake in Weft (base/error.h).

#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "builtin/context.h"
#include "capture/compile.h"
#include "capture/run_eagerly.h"
#include "compiler/run/eager.h"
#include "ir/reading.h"
#include "ops/all.h"

namespace weft {

// Returns the options that the environment sets, such as WEFT_LOGS. Throws UserError for an invalid value.
inline Options environment_options() {
  Options options;
  apply_environment(options, process_environment());
  return options;
}

// Creates concrete Values, on which ops run eagerly, and compiles functions of Values. Only one thread may use it at a
// time. It must outlive its Values and the functions that it compiled.
class Compiler {
 public:
  // The options are those of the command line: mode and backend are cc.mode and cc.backend. Throws UserError as
  // open_context does, and for any device but the CPU.
  explicit Compiler(Options options = environment_options())
      : requested_(std::move(options)),
        opened_(open_context(requested_)),
        home_(*opened_.context, {1, opened_.context->options.max_num_batched_tokens}) {
    check_is_for_cpu(*opened_.context);
  }

  const std::shared_ptr<Context>& context() const { return opened_.context; }
  // Messages to the user about the options, including the options of single functions.
  const std::vector<std::string>& notes() const { return opened_.notes; }

  Value value(Tensor tensor) { return home_.value(std::move(tensor)); }
  // Returns a row-major f32 tensor. Throws UserError if the shape does not have as many elements as `numbers`.
  Value value(const Shape& shape, const std::vector<float>& numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    USER_CHECK(element_count(shape) == Dim(count), "[value] wanted {} numbers for {}, but got {}",
               element_count(shape).text(), shape_text(shape), count);
    return value(Tensor::from_bytes(Meta::tensor(DType::f32, shape), numbers.data()));
  }

  // Compiles a function; capture/compile.h describes the result. Throws UserError for an unknown option. The options
  // given here apply to compiled code only: calls that run op by op, as with mode none, use the Compiler's options.
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
  std::vector<std::pair<Options, std::shared_ptr<Context>>> others_;  // for functions that have their own options
};

}  // namespace weft
