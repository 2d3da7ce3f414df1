// Sizes that no branch may depend on: unbacked symbols.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "capture/dynamic_dims.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::unbacked_dims_test {

Value by_length(Value x) { return guard(x, x.dim(0) > 16) ? silu(x) : sigmoid(x); }

Value gated(Value x) { return mul(silu(x), x); }

Value both(Value x, Value y) { return add(x, y); }

TEST(UnbackedDims, OneEntryServesTheRangeAndNothingIsCheckedBesides) {
  Eager eager;
  auto compiled = compile(eager.context, by_length);
  compiled.mark_unbacked(0, 0, {"tokens", 17, 40});
  for (const std::int64_t rows : {17, 40, 18}) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), by_length(x))) << rows;
  }
  const CaptureCounts& counts = compiled.captured().counts();
  EXPECT_EQ(counts.compiled, 1);
  EXPECT_EQ(counts.proved, 1);
  EXPECT_EQ(counts.boundaries + counts.checks, 0);
}

TEST(UnbackedDims, ABranchThatTheRangeDoesNotDecideIsAnError) {
  Eager eager;
  auto compiled = compile(eager.context, by_length, {.name = "f"});
  compiled.mark_unbacked(0, 0, {"tokens", 16, 40});
  for (const std::int64_t rows : {16, 40}) {
    const std::string said = message_of([&] { compiled(eager.random({rows, 8})); });
    EXPECT_TRUE(
        said.starts_with("[f] guard() asks for 16 < tokens, which is not the same for all of tokens in "
                         "[16, 40]: an unbacked size decides nothing"))
        << said;
  }
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

TEST(UnbackedDims, NoneIsANumber) {
  Eager eager;
  auto compiled =
      compile(eager.context, [](Value x) { return mul_scalar(x, static_cast<double>(extent(x, 0))); }, {.name = "f"});
  compiled.mark_unbacked(0, 0, {"tokens", 1, 40});
  const std::string said = message_of([&] { compiled(eager.random({3, 8})); });
  EXPECT_TRUE(
      said.starts_with("[f] extent() asks for the number that tokens is, but it may be any of tokens in "
                       "[1, 40]"))
      << said;
}

// Rows that are not marked are symbols if that works, and numbers if not.
TEST(UnbackedDims, RowsThatMayBeSymbolsAreCompiledSizeBySizeWhereTheyDecide) {
  Eager eager;
  Options options = eager.context->options;
  for (const bool by_option : {false, true}) {
    eager.context->options.dynamic_shapes_type = by_option ? "unbacked" : "backed";
    CompileOptions wanted{.dynamic = Dynamic::yes};
    if (!by_option) wanted.dynamic_shapes = DynamicShapes::unbacked;
    auto branching = compile(eager.context, by_length, wanted);
    auto without_branch = compile(eager.context, gated, wanted);
    for (const std::int64_t rows : {3, 20, 5}) {
      const Value x = eager.random({rows, 16});
      EXPECT_TRUE(same_bits(branching(x), by_length(x))) << rows;
      EXPECT_TRUE(same_bits(without_branch(x), gated(x))) << rows;
    }
    EXPECT_EQ(branching.captured().counts().compiled, 3);
    EXPECT_EQ(without_branch.captured().counts().compiled, 1);
  }
  eager.context->options = options;
}

// Code after a read runs in every call, so the call's own size may decide.
TEST(UnbackedDims, RowsThatNobodyMarkedDecideBehindAGraphBreak) {
  Eager eager;
  const auto function = [](Value x) { return item(sum(sum(x, 0), 1)) > 0 ? silu(x) : by_length(x); };
  auto compiled =
      compile(eager.context, function, {.dynamic = Dynamic::yes, .dynamic_shapes = DynamicShapes::unbacked});
  for (const double factor : {1.0, -1.0}) {
    for (const std::int64_t rows : {3, 20}) {
      const Value x = mul_scalar(silu(eager.random({rows, 8})), factor);
      EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows << " " << factor;
    }
  }
}

TEST(UnbackedDims, OneNameIsBackedOrUnbacked) {
  Eager eager;
  auto compiled = compile(eager.context, both, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 40});
  EXPECT_TRUE(message_of([&] {
                compiled.mark_unbacked(1, 0, {"tokens", 1, 40});
              }).starts_with("[mark_dynamic] tokens must be backed or unbacked, but is marked as both"));
}

}  // namespace weft::unbacked_dims_test
