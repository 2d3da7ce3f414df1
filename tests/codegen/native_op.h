#pragma once

// An op as its meaning, with code generated for it, against the same meaning run primitive by primitive.

#include <memory>
#include <string>

#include "tests/test_context.h"

namespace weft {

// Where every op with a meaning is that.
std::shared_ptr<Context> native_context(const std::string& features = "host", int threads = 2);

// Of a compiled call.
struct NativeOutcome {
  int functions = 0;  // steps that are generated
  int others = 0;
};

// Compiles and runs a call of the op alone and fails the running test where a bit differs from its meaning, a NaN for a
// NaN.
NativeOutcome run_native_op(const Op& op, const SampleCall& call, const Context& context);

// Whether a call is of rows, with a meaning, and without products: those are computed by kernels that may sum in
// another order.
bool is_native_sample(const Op& op, const SampleCall& call);

}  // namespace weft
