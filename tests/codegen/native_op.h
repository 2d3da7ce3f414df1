#pragma once

// An op as its meaning, with code generated for it, against the same meaning run primitive by primitive.

#include <memory>
#include <string>

#include "tests/test_context.h"

namespace weft {

// Where every op with a meaning is that.
std::shared_ptr<Context> native_context(const std::string& features = "host", int threads = 2);

// The result of a compiled call.
struct NativeOutcome {
  int functions = 0;  // steps that are generated
  int others = 0;
};

// Compiles and runs a call of only this op. The running test fails if a bit differs from the op's meaning; all NaNs are
// equal.
NativeOutcome run_native_op(const Op& op, const SampleCall& call, const Context& context);

// Whether the call works on rows, has a meaning, and has no products: kernels compute those and may sum in another
// order.
bool is_native_sample(const Op& op, const SampleCall& call);

}  // namespace weft
