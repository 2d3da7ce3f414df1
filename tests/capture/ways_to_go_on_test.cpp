// After a graph break: continuations that are not compiled, because there are too many or because they do not fit a
// symbol. They run op by op, once, and compiled ones are kept.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/concat.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/linear.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::ways_to_go_on_test {

Value total(Value x) { return sum(reshape(x, {1, 32}), 1); }

// New continuations run op by op, known ones run as before.
TEST(WaysToGoOn, BeyondTheLimitWhatIsKnownStaysCompiled) {
  Eager eager;
  int effects = 0;
  const auto function = [&](Value x, int rounds) {
    Value y = silu(x);
    if (item(total(y)) > 1e9) return x;
    ++effects;
    for (int i = 0; i < rounds; ++i) y = silu(y);
    return item(total(y)) > 1e9 ? x : mul(y, y);
  };
  auto compiled = compile(eager.context, function, {.name = "f", .recompile_limit = 3});
  const Value x = eager.random({4, 8});
  testing::internal::CaptureStderr();
  const auto call = [&](int rounds) {
    const int before = effects;
    const Value came = compiled(x, rounds);
    EXPECT_EQ(effects, before + 1) << rounds;
    EXPECT_TRUE(same_bits(came, function(x, rounds))) << rounds;
  };
  for (int rounds = 1; rounds <= 6; ++rounds) call(rounds);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 3);
  eager.context->first_time_work->set_ready(true);
  for (const int rounds : {1, 2, 3, 3, 2, 1}) call(rounds);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 3) << "known ways";
  for (const int rounds : {7, 1, 6, 2}) call(rounds);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 5);
  EXPECT_EQ(eager.context->first_time_work->counts(FirstTime::compile).after_ready, 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      said.starts_with("weft: [f] continues in a way that is not compiled; such calls run op by op, and "
                       "compiled code is kept: there are 3 ways to go on before silu(%"))
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "it is said once";
}

// Memory is donated before and after the point where the continuation is a new one.
TEST(WaysToGoOn, WaysThatAreNotCompiledMayGiveMemoryAway) {
  Eager eager{kernel_context()};
  const Value weight = eager.random({8}, 9);
  const auto function = [tensor = weight.tensor()](Value x, Value r, int rounds) {
    const Value w = x.home().value(tensor);
    Value early = mul(x, x);
    auto [y, residual] = fused_add_rms_norm(maybe_inplace, x, r, w, 1e-5);
    if (item(total(y)) > 1e9) return y;
    for (int i = 0; i < rounds; ++i) {
      std::tie(y, residual) = fused_add_rms_norm(maybe_inplace, y, residual, w, 1e-5);
      if (i % 2 == 1 && item(total(y)) > 1e9) return y;
    }
    return rounds % 2 == 0 ? add(y, early) : y;
  };
  auto compiled = compile(eager.context, function, {.name = "f", .recompile_limit = 2});
  testing::internal::CaptureStderr();
  for (const int rounds : {1, 2, 3, 4, 5, 2, 1, 4})
    EXPECT_TRUE(same_bits(compiled(eager.random({4, 8}, 1), eager.random({4, 8}, 2), rounds),
                          function(eager.random({4, 8}, 1), eager.random({4, 8}, 2), rounds)))
        << rounds;
  testing::internal::GetCapturedStderr();
  EXPECT_GT(compiled.captured().counts().op_by_op, 0);
}

// Rows that a symbol cannot describe, because they are a sum.
Value with_a_row_more(const Value& x) { return concat({x, slice(x, 0, 0, 1)}, 0); }

// The function has read a value, so the call continues with numbers if symbols do not fit, and the next call begins
// with numbers.
TEST(WaysToGoOn, SideEffectsHappenOnceAlsoWhereRowsCannotBeASymbol) {
  int effects = 0;
  const std::vector<std::function<Value(Value)>> functions{
      // A result cannot have the rows of a symbol,
      [&](Value x) {
        const Value y = silu(x);
        item(sum(sum(y, 0), 1));
        ++effects;
        return silu(with_a_row_more(y));
      },
      // nor can a value that is read,
      [&](Value x) {
        ++effects;
        const Value y = silu(with_a_row_more(silu(x)));
        item(sum(sum(y, 0), 1));
        ++effects;
        return slice(mul(y, y), 0, 0, 1);
      },
      // and a value that is computed with symbolic widths,
      [&](Value x) {
        item(sum(sum(x, 0), 1));
        ++effects;
        const Value y = reshape(x, {8, x.dim(0)});
        return add(silu(y), y);
      },
      // also if it donates memory.
      [&](Value x) {
        const Value y = mul(x, x);
        item(sum(sum(y, 0), 1));
        ++effects;
        const Value z = fused_add_rms_norm(maybe_inplace, x, y, {}, 1e-5).first;
        item(sum(sum(z, 0), 1));
        ++effects;
        return silu(with_a_row_more(z));
      },
  };
  for (std::size_t i = 0; i < functions.size(); ++i)
    for (const Dynamic dynamic : {Dynamic::automatic, Dynamic::yes}) {
      Eager eager{kernel_context()};
      auto compiled = compile(eager.context, functions[i], {.name = "f", .dynamic = dynamic});
      for (const std::int64_t rows : {4, 5, 6, 5, 4, 6, 7, 7}) {
        effects = 0;
        const Value wanted = functions[i](eager.random({rows, 8}));
        const int once = std::exchange(effects, 0);
        EXPECT_TRUE(same_bits(compiled(eager.random({rows, 8})), wanted)) << i << " " << rows;
        EXPECT_EQ(effects, once) << i << " " << rows;
      }
      EXPECT_EQ(compiled.captured().counts().op_by_op, 1) << i;
      EXPECT_EQ(compiled.captured().counts().compiled, 4) << i;
    }
}

// Code that takes a symbol for a number throws anywhere, and runs a second time unless it cannot.
TEST(WaysToGoOn, CodeThatTakesASizeForANumberRunsTwiceInOneCall) {
  Eager eager;
  int effects = 0;
  const auto function = [&](Value x) {
    item(sum(sum(x, 0), 1));
    ++effects;
    for (std::int64_t i = 0; i < x.dim(0).number(); ++i) x = mul_scalar(x, 0.5);
    return x;
  };
  auto compiled = compile(eager.context, function);
  for (const auto& [rows, runs] : std::vector<std::pair<int, int>>{{3, 1}, {5, 2}, {3, 1}, {7, 1}, {8, 1}, {5, 1}}) {
    const Value x = eager.random({rows, 8}), wanted = function(x);
    effects = 0;
    EXPECT_TRUE(same_bits(compiled(x), wanted)) << rows;
    EXPECT_EQ(effects, runs) << rows;
  }
}

// It is not run once for every choice of symbols.
TEST(WaysToGoOn, AlsoWhereSeveralSizesMayBeSymbols) {
  Eager eager;
  int effects = 0;
  const auto function = [&](Value x, Value y) {
    item(sum(sum(y, 0), 1));
    ++effects;
    return mul_scalar(x, static_cast<double>(x.dim(0).number()));
  };
  auto compiled = compile(eager.context, function, {.dynamic = Dynamic::yes});
  for (const int runs : {2, 1}) {
    const Value x = eager.random({3, 8}), y = eager.random({5, 8}), wanted = function(x, y);
    effects = 0;
    EXPECT_TRUE(same_bits(compiled(x, y), wanted));
    EXPECT_EQ(effects, runs);
  }
}

// Only code that does not fit symbols prevents them.
TEST(WaysToGoOn, AnErrorOfTheFunctionsOwnLeavesSymbolsSymbols) {
  Eager eager;
  const auto function = [&](Value x, double most) {
    if (item(sum(sum(mul(x, x), 0), 1)) > most) fail_user("too large");
    return silu(x);
  };
  auto compiled = compile(eager.context, function, {.dynamic = Dynamic::yes});
  EXPECT_EQ(plain_message_of([&] { compiled(eager.random({3, 8}), -1.0); }), "too large");
  for (int rows = 2; rows < 14; ++rows) {
    const Value x = eager.random({rows, 8});
    EXPECT_TRUE(same_bits(compiled(x, 1e9), function(x, 1e9))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

// In the first call the weight has the same number of rows as x, and shares its symbol; a width cannot be a symbol.
TEST(WaysToGoOn, AMarkedSizeThatAnotherArgumentHappensToHave) {
  Eager eager;
  int effects = 0;
  const auto function = [&](Value x, Value w) {
    item(sum(sum(x, 0), 1));
    ++effects;
    return linear(x, w);
  };
  auto compiled = compile(eager.context, function, {.dynamic = Dynamic::yes});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 64});
  const Value w = eager.random({8, 8}, 2);
  for (const int rows : {8, 8, 5, 9}) {
    const Value x = eager.random({rows, 8}), wanted = function(x, w);
    effects = 0;
    EXPECT_TRUE(same_bits(compiled(x, w), wanted)) << rows;
    EXPECT_EQ(effects, 1) << rows;
  }
}

TEST(WaysToGoOn, ItIsAnErrorWhereItHasWrittenOverAnArgument) {
  Eager eager{kernel_context()};
  const auto function = [](Value x) {
    const Value y = fused_add_rms_norm(maybe_inplace, x, mul(x, x), {}, 1e-5).first;
    item(sum(sum(y, 0), 1));
    return mul_scalar(y, static_cast<double>(x.dim(0).number()));
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  const auto call = [&](std::int64_t rows) {
    return same_bits(compiled(eager.random({rows, 8})), function(eager.random({rows, 8})));
  };
  EXPECT_TRUE(call(3));
  const std::string said = message_of([&] { call(5); });
  EXPECT_TRUE(said.starts_with("[f] failed where rows may be a symbol, and cannot be tried again")) << said;
  EXPECT_NE(said.find("extent() gives that"), std::string::npos) << said;
  for (const std::int64_t rows : {5, 3, 7}) EXPECT_TRUE(call(rows)) << rows;
}

// The compiled continuation fits a symbol, the other one does not.
TEST(WaysToGoOn, AWayThatDoesNotFitASymbolRunsOpByOp) {
  Eager eager;
  int effects = 0;
  bool grows = false;
  const auto function = [&](Value x) {
    const Value y = silu(x);
    item(sum(sum(y, 0), 1));
    ++effects;
    return grows ? silu(with_a_row_more(y)) : mul(y, y);
  };
  auto compiled = compile(eager.context, function, {.name = "f", .dynamic = Dynamic::yes});
  testing::internal::CaptureStderr();
  int calls = 0;
  for (const std::int64_t rows : {4, 5, 6, 7, 4, 5}) {
    grows = ++calls % 2 == 0;
    const Value x = eager.random({rows, 8});
    effects = 0;
    const Value came = compiled(x);
    EXPECT_EQ(effects, 1);
    EXPECT_TRUE(same_bits(came, function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 3);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("weft: [f] continues in a way that is not compiled")) << said;
}

TEST(WaysToGoOn, AFunctionThatDoesSomethingElseEveryTimeGoesOpByOpAndSaysSo) {
  Eager eager{kernel_context()};
  auto compiled = compile(eager.context, [](Value x) { return mul_scalar(x, item(total(x))); },
                          {.name = "f", .recompile_limit = 3});
  testing::internal::CaptureStderr();
  for (int seed = 1; seed <= 8; ++seed) {
    const Value x = eager.random({4, 8}, static_cast<std::uint64_t>(seed));
    EXPECT_TRUE(same_bits(compiled(x), mul_scalar(x, item(total(x))))) << seed;
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(
      said.find(
          "weft: [f] continues in a way that is not compiled; such calls run op by op, and compiled code is kept: "
          "there are 3 ways to go on before mul_scalar(%0, value="),
      0u)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "it is said once";
  EXPECT_EQ(compiled.captured().counts().op_by_op, 5);
}

}  // namespace weft::ways_to_go_on_test
