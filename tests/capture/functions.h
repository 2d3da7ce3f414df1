#pragma once

// Shared code of the tests of capture: tensors, an evaluator for them, and comparison of bits.

#include <cstring>
#include <sstream>

#include "compiler/run/eager.h"
#include "tests/test_context.h"

namespace weft {

// A Context and a home for values, in which plain calls run op by op.
struct Eager {
  explicit Eager(std::shared_ptr<Context> made = test_context()) : context(std::move(made)) {}

  std::shared_ptr<Context> context;
  EagerEvaluator home{*context, {1, context->options.max_num_batched_tokens}};

  // f32 in (-1, 1), of this seed.
  Value random(std::vector<std::int64_t> shape, std::uint64_t seed = 1) {
    return home.value(make_sample_tensor({"x", std::move(shape)}, DType::f32, seed));
  }
  // The log of these topics from now on.
  std::ostringstream& log(const std::string& topics) {
    context->log = Log(topics, said_);
    return said_;
  }

 private:
  std::ostringstream said_;
};

// Whether type, layout and bits are the same.
inline bool same_bits(const Value& a, const Value& b) {
  if (!(a.meta() == b.meta())) return false;
  const Tensor x = contiguous(a.tensor()), y = contiguous(b.tensor());
  const auto bytes = static_cast<std::size_t>(x.meta.bytes().number());
  return bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0;
}

}  // namespace weft
