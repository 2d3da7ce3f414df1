// Sizes as symbols: marked, seen to change, or all; and branches on them.

#include "capture/dynamic_dims.h"

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/concat.h"
#include "ops/linear.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::dynamic_dims_test {

Value layer(Value x, Value residual, Value weight) { return add(silu(linear(x, weight)), residual); }

struct Inputs {
  Value x, residual, weight;
};
Inputs inputs(Eager& eager, std::int64_t rows) {
  return {eager.random({rows, 16}, 1), eager.random({rows, 16}, 2), eager.random({16, 16}, 3)};
}

TEST(DynamicDims, OneCompilationServesTheDeclaredRange) {
  Eager eager;
  auto compiled = compile(eager.context, layer, {.dynamic = Dynamic::no});
  compiled.mark_dynamic(0, 0, {"tokens", 0, 40});
  compiled.mark_dynamic(1, -2, {"tokens", 0, 40});
  for (const std::int64_t rows : {1, 0, 2, 40, 16, 17, 0, 3}) {
    const auto [x, residual, weight] = inputs(eager, rows);
    EXPECT_TRUE(same_bits(compiled(x, residual, weight), layer(x, residual, weight))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 2) << "what is empty";
}

TEST(DynamicDims, ASizeThatChangedOnceBecomesASymbol) {
  Eager eager;
  for (const std::int64_t first : {1, 0, 5}) {
    auto compiled = compile(eager.context, layer);
    for (const std::int64_t rows : {first, std::int64_t{16}, std::int64_t{7}, std::int64_t{300}, std::int64_t{1}}) {
      const auto [x, residual, weight] = inputs(eager, rows);
      EXPECT_TRUE(same_bits(compiled(x, residual, weight), layer(x, residual, weight))) << first << " " << rows;
    }
    EXPECT_EQ(compiled.captured().counts().compiled, first == 0 ? 1 : 2) << first;
  }
}

TEST(DynamicDims, WithDynamicYesTheFirstCallHasSymbols) {
  Eager eager;
  auto compiled = compile(eager.context, layer, {.dynamic = Dynamic::yes});
  for (const std::int64_t rows : {16, 3, 1, 64}) {  // 16 is the width of the weight, too
    const auto [x, residual, weight] = inputs(eager, rows);
    EXPECT_TRUE(same_bits(compiled(x, residual, weight), layer(x, residual, weight))) << rows;
  }
  EXPECT_LE(compiled.captured().counts().compiled, 2);
}

TEST(DynamicDims, WithDynamicNoEverySizeIsCompiled) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); }, {.dynamic = Dynamic::no});
  for (const std::int64_t rows : {4, 5, 6, 4}) compiled(eager.random({rows, 8}));
  EXPECT_EQ(compiled.captured().counts().compiled, 3);
}

// Kernels are chosen by widths, so a width is compiled by itself: bits stay those of a plain call.
TEST(DynamicDims, EveryWidthIsCompiled) {
  Eager eager;
  const std::vector<std::function<Value(Value, Value)>> functions{
      [](Value x, Value) { return silu(x); },
      [](Value x, Value weight) { return rms_norm(mul(x, x), weight, 1e-5); },
      [](Value x, Value weight) { return add(x, weight); },
      [](Value x, Value) { return softmax(x); },
      [](Value x, Value) { return sum(sigmoid(x), 1); },
      [](Value x, Value) { return linear(x, x); },
      [](Value x, Value) {
        return concat({x, silu(x)}, 1);
      },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    auto compiled = compile(eager.context, functions[i]);
    for (const std::int64_t width : {4, 5, 64, 6, 70}) {
      const Value x = eager.random({3, width}), weight = eager.random({width}, 2);
      EXPECT_TRUE(same_bits(compiled(x, weight), functions[i](x, weight))) << i << " " << width;
    }
    EXPECT_EQ(compiled.captured().counts().compiled, 5) << i;
  }
}

// These sizes are not marked, so every size is compiled.
TEST(DynamicDims, RowsThatCannotBeASymbolAreCompiledOneByOne) {
  Eager eager;
  const auto function = [](Value x) { return silu(concat({x, slice(x, 0, 0, 1)}, 0)); };
  auto compiled = compile(eager.context, function);
  for (const std::int64_t rows : {4, 5, 6, 4, 5}) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 3);
}

Value branching(Value x) {
  if (guard(x, x.dim(0) > 16)) return silu(x);
  if (guard(x, x.dim(0) * Dim(2) <= Dim(8))) return mul_scalar(x, 2.0);
  return mul_scalar(x, 3.0);
}

TEST(DynamicDims, ABranchInsideTheRangeIsABoundaryAndAllSidesAreCompiledAtOnce) {
  Eager eager;
  std::ostringstream& said = eager.log("guards");
  auto compiled = compile(eager.context, branching, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  compiled.prepare(eager.random({20, 8}));
  EXPECT_EQ(compiled.captured().counts().compiled, 3) << said.str();
  EXPECT_NE(said.str().find("tokens in [17, 64]\n"), std::string::npos) << said.str();
  EXPECT_NE(said.str().find("tokens in [1, 4]\n"), std::string::npos) << said.str();
  EXPECT_NE(said.str().find("tokens in [5, 16]\n"), std::string::npos) << said.str();
  for (std::int64_t rows = 1; rows <= 64; ++rows) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), branching(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 3) << "nothing in serving";
  EXPECT_EQ(compiled.captured().counts().checks, 0);
}

TEST(DynamicDims, ASideThatCannotBeCompiledYetWaitsUntilItIsCalled) {
  Eager eager;
  const auto function = [](Value x) {
    if (guard(x, x.dim(0) > 16)) return silu(x);
    if (guard(x, x.dim(0) < 4)) throw std::runtime_error("too short");
    return item(sum(sum(silu(x), 0), 1)) > 0 ? mul_scalar(x, 2.0) : sigmoid(x);
  };
  auto compiled = compile(eager.context, function);
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  for (const std::int64_t rows : {20, 8, 40, 5, 16}) {
    const Value x = eager.random({rows, 8}, static_cast<std::uint64_t>(rows));
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
    EXPECT_EQ(compiled.captured().counts().compiled, rows == 20 ? 1 : 2) << rows;
    EXPECT_THROW(compiled(eager.random({3, 8})), std::runtime_error);
  }
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

// All sizes were marked and prepared, so no call compiles anything.
TEST(DynamicDims, NothingIsDoneForTheFirstTimeOnceItIsReady) {
  Eager eager;
  auto compiled = compile(eager.context, branching);
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  compiled.prepare(eager.random({20, 8}));
  eager.context->first_time_work->set_ready(true);
  const Value rows = eager.random({64, 8});
  std::uint64_t number = 1;
  for (int step = 0; step < 2000; ++step) {
    number = number * 6364136223846793005u + 1442695040888963407u;
    compiled(slice(rows, 0, 0, static_cast<std::int64_t>(1 + (number >> 33) % 64)));
  }
  EXPECT_EQ(eager.context->first_time_work->counts(FirstTime::compile).after_ready, 0);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

TEST(DynamicDims, ABranchThatGoesOneWayInTheWholeRangeNeedsNoGuard) {
  Eager eager;
  auto compiled = compile(eager.context, branching);
  compiled.mark_dynamic(0, 0, {"tokens", 17, 64});
  for (std::int64_t rows = 17; rows <= 64; ++rows) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), branching(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().proved, 1);
}

TEST(DynamicDims, ABranchThatNoRangeSaysStaysACheck) {
  Eager eager;
  const auto function = [](Value x) {
    return guard(x, equal(align(x.dim(0), 8), x.dim(0))) ? silu(x) : mul_scalar(x, 3.0);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  for (std::int64_t rows = 1; rows <= 64; ++rows) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 2);
  EXPECT_EQ(compiled.captured().counts().checks, 2);
  EXPECT_EQ(compiled.captured().guard_texts(0).back(), "align(tokens, 8) != tokens");
}

TEST(DynamicDims, ASizeTakenAsANumberIsCompiledForThatNumber) {
  Eager eager;
  const auto function = [](Value x) {
    for (std::int64_t i = 0; i < extent(x, 0); ++i) x = mul_scalar(x, 0.5);
    return x;
  };
  auto compiled = compile(eager.context, function);
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  for (const std::int64_t rows : {3, 5, 3}) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 2);
}

TEST(DynamicDims, ALoopOverASizeIsTheSame) {
  Eager eager;
  const auto function = [](Value x) {
    for (int i = 0; guard(x, Dim(i) < x.dim(0)); ++i) x = mul_scalar(x, 0.5);
    return x;
  };
  auto compiled = compile(eager.context, function);
  compiled.mark_dynamic(0, 0, {"tokens", 1, 5});
  compiled.prepare(eager.random({2, 8}));
  EXPECT_EQ(compiled.captured().counts().compiled, 5);
  for (std::int64_t rows = 1; rows <= 5; ++rows) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 5);
}

TEST(DynamicDims, SizesOutsideTheRangeAreErrors) {
  Eager eager;
  auto compiled = compile(eager.context, layer, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 2, 40});
  compiled.mark_dynamic(1, 0, {"tokens", 2, 40});
  const auto said = [&](std::int64_t rows, std::int64_t others) {
    return plain_message_of([&] {
      compiled(eager.random({rows, 16}), eager.random({others, 16}), eager.random({16, 16}));
    });
  };
  EXPECT_EQ(missing_part(said(41, 41), {"[f] tokens", "[2, 40]", "argument 0 is 41"}), "");
  EXPECT_EQ(missing_part(said(1, 1), {"[f] tokens", "[2, 40]", "argument 0 is 1"}), "");
  EXPECT_EQ(missing_part(said(3, 4), {"[f] tokens", "3 in dim 0 of argument 0", "4 in dim 0 of argument 1"}), "");
  EXPECT_EQ(said(3, 3), "");
  EXPECT_EQ(missing_part(said(3, 4), {"[f] tokens", "3 in dim 0 of argument 0", "4 in dim 0 of argument 1"}), "");
  EXPECT_EQ(missing_part(said(41, 41), {"[f] tokens", "[2, 40]", "argument 0 is 41"}), "");
  EXPECT_EQ(missing_part(plain_message_of([&] {
                           compiled.mark_dynamic(2, 0, {"width", 1, 2});
                         }),
                         {"[f] mark_dynamic", "before the first call"}),
            "");
}

TEST(DynamicDims, RefusesRangesThatAreNone) {
  Eager eager;
  auto compiled = compile(eager.context, layer, {.name = "f"});
  const auto said = [&](int dim, const DynamicDim& range) {
    return plain_message_of([&] { compiled.mark_dynamic(0, dim, range); });
  };
  EXPECT_EQ(missing_part(said(0, {"tokens", 5, 4}), {"[mark_dynamic] tokens", "[5, 4]"}), "");
  EXPECT_EQ(missing_part(said(0, {"tokens", -1, 4}), {"[mark_dynamic] tokens", "[-1, 4]"}), "");
  EXPECT_NE(said(0, {"to kens", 1, 4}).find("'to kens'"), std::string::npos);
  EXPECT_EQ(said(0, {"tokens", 1, 4}), "");
  EXPECT_EQ(missing_part(said(0, {"tokens", 1, 4}), {"[mark_dynamic]", "dim 0 of argument 0", "tokens"}), "");
  EXPECT_EQ(missing_part(said(1, {"tokens", 1, 5}), {"[mark_dynamic] tokens", "[1, 4]", "[1, 5]"}), "");
  EXPECT_EQ(said(7, {"other", 1, 5}), "");
  EXPECT_EQ(missing_part(plain_message_of([&] {
                           compiled(eager.random({4, 16}), eager.random({4, 16}), eager.random({16, 16}));
                         }),
                         {"[f] other", "dim 7 of argument 0"}),
            "");
}

TEST(DynamicDims, ADimIsMarkedOnceFromWhicheverEndItIsCounted) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); });
  compiled.mark_dynamic(0, 0, {"a", 1, 64});
  compiled.mark_dynamic(0, -2, {"b", 1, 64});
  EXPECT_EQ(missing_part(plain_message_of([&] {
                           compiled(eager.random({4, 8}));
                         }),
                         {"[mark_dynamic] dim 0 of argument 0", "twice", "as a and as b"}),
            "");
}

// A symbol has no number, and nothing marked this dim as a number.
TEST(DynamicDims, ASizeThatIsUsedAsANumberIsOne) {
  Eager eager;
  const auto function = [](Value x) {
    for (std::int64_t i = 0; i < x.dim(0).number(); ++i) x = mul_scalar(x, 0.5);
    return x;
  };
  auto compiled = compile(eager.context, function);
  for (const std::int64_t rows : {3, 5, 3, 7}) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 3);
}

TEST(DynamicDims, WidthsCannotBeMarked) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); }, {.name = "f"});
  compiled.mark_dynamic(0, 1, {"width", 1, 64});
  EXPECT_EQ(missing_part(plain_message_of([&] {
                           compiled(eager.random({4, 8}));
                         }),
                         {"[f] only rows", "dim 1 of %argument_0 is width"}),
            "");
}

TEST(DynamicDims, RowsMayBeAMultipleOfTheMarkedOnes) {
  Eager eager;
  const auto function = [](const Value& x) { return silu(reshape(x, {x.dim(0) * Dim(2), 4})); };
  auto compiled = compile(eager.context, function, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  for (const std::int64_t rows : {4, 7, 64}) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

TEST(DynamicDims, RowsThatAreASumCannotBeMarked) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return concat({x, slice(x, 0, 0, 1)}, 0); }, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  const std::string said = message_of([&] { compiled(eager.random({4, 8})); });
  EXPECT_NE(said.find("dim 0 of %concat_0 is tokens + 1, but the rows are governed by tokens"), std::string::npos)
      << said;
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

}  // namespace weft::dynamic_dims_test
