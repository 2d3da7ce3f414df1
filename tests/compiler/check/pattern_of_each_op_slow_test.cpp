// The check of patterns runs each op on all types and edges that the op accepts.

#include <gtest/gtest.h>

#include "compiler/check/pattern_check.h"
#include "compiler/run/sample_call.h"
#include "tests/test_context.h"

namespace weft::pattern_of_each_op_test {

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context();
  return *shared;
}

// Each op as a pattern that stands for itself: no sample, no variant and no edge may be refused or end the program.
TEST(EveryOp, HoldsAsAPatternForItself) {
  for (const auto& [name, op] : context().ops.all()) {
    if (op.is_allocation || op.is_view || op.schema.tensor_count() == 0) continue;
    Pattern pattern{.name = name};
    PatternNode node{.name = name, .op = &op, .attributes = complete_attributes(op.schema, op.samples[0].attributes)};
    const SampleCall call = sample_calls(op)[0];
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      node.operands.push_back(call.operands[i].defined()
                                  ? PatternOperand{.wildcard = static_cast<int>(pattern.wildcards.size())}
                                  : PatternOperand());
      if (call.operands[i].defined()) add_value_wildcard(pattern, "v" + std::to_string(i), std::nullopt);
    }
    node.results.resize(op.schema.results.size());
    for (std::size_t i = 0; i < op.schema.results.size(); ++i)
      pattern.before.results.push_back({.node = 0, .result = static_cast<int>(i)});
    pattern.before.nodes.push_back(node);
    pattern.after = pattern.before;
    SCOPED_TRACE(name);
    const PatternCheck check = check_pattern(pattern, context(), true);
    EXPECT_EQ(check.failure, "");
  }
}

}  // namespace weft::pattern_of_each_op_test
