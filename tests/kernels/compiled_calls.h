#pragma once

// Holds what a CPU kernel gave against the same call compiled: a graph of the op alone, for any count of rows where it
// allows them, made a Plan in which the CPU's kernels are the first choice, and replayed.

#include <optional>
#include <string>
#include <vector>

#include "tests/compiled_evaluator.h"
#include "tests/test_context.h"

namespace weft {

class CompiledCalls {
 public:
  CompiledCalls(const std::string& ceiling, int threads);

  // The test fails where a bit differs; a NaN equals any NaN. Operands that the op writes over are copied.
  void expect_same(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                   const Attributes& attributes, const std::vector<Tensor>& came);

 private:
  std::shared_ptr<Context> context_;
  CompiledEvaluator evaluator_;
};

}  // namespace weft
