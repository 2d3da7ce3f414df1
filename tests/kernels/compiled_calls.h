#pragma once

// Compares the results of a CPU kernel with the same call compiled: a graph of only this op, for any number of rows if
// the op allows it, made into a Plan in which the CPU's kernels have priority, and replayed.

#include <optional>
#include <string>
#include <vector>

#include "tests/compiled_evaluator.h"
#include "tests/test_context.h"

namespace weft {

class CompiledCalls {
 public:
  CompiledCalls(const std::string& ceiling, int threads);

  // The test fails if a bit differs; a NaN equals any NaN. Operands that the op overwrites are copied.
  void expect_same(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                   const Attributes& attributes, const std::vector<Tensor>& came);

 private:
  std::shared_ptr<Context> context_;
  CompiledEvaluator evaluator_;
};

}  // namespace weft
