// Memory that a function donates: compiled code gives the bits of a plain call, whatever was overwritten.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "capture/run_eagerly.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::given_memory_test {

constexpr double kNever = 1e9, kAlways = -1e9;  // totals are above

Value normed(Value x, Value residual, Value weight) {
  return fused_add_rms_norm(maybe_inplace, x, residual, weight, 1e-5).first;
}
Value total(Value x) { return sum(sum(x, 0), 1); }

// Both sides get tensors of their own, as both overwrite them.
template <class Compiled, class Function, class... Others>
testing::AssertionResult is_same(Eager& eager, Compiled& compiled, const Function& function, std::int64_t rows,
                                 const Others&... others) {
  const Value weight = eager.random({8}, 3);
  const auto call = [&](auto& called) {
    return called(eager.random({rows, 8}, 1), eager.random({rows, 8}, 2), weight, others...);
  };
  if (same_bits(call(compiled), call(function))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "other bits with " << rows << " rows";
}

TEST(GivenMemory, WhatNobodyWantedBeforeIsMadeBeforeItsInputsAreWrittenOver) {
  Eager eager{kernel_context()};
  const auto function = [](Value x, Value r, Value w, double threshold) {
    const Value b = mul(x, x);
    item(total(silu(x)));
    const Value y = normed(x, r, w);
    return item(total(y)) > threshold ? add(y, b) : y;
  };
  auto compiled = compile(eager.context, function);
  for (const double threshold : {kNever, kNever, kAlways, kAlways, kNever, kAlways})
    EXPECT_TRUE(is_same(eager, compiled, function, 4, threshold)) << threshold;
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

TEST(GivenMemory, SoIsWhatIsReadOnAWayThatIsKnown) {
  Eager eager{kernel_context()};
  double read = 0;
  const auto function = [&](Value x, Value r, Value w, bool reads) {
    const Value early = total(mul(x, x));
    item(total(silu(x)));
    const Value y = normed(x, r, w);
    item(total(y));
    if (reads) read = item(early);
    return y;
  };
  auto compiled = compile(eager.context, function);
  EXPECT_TRUE(is_same(eager, compiled, function, 4, false));
  const Value weight = eager.random({8}, 3);
  function(eager.random({4, 8}, 1), eager.random({4, 8}, 2), weight, true);
  const double wanted = read;
  for (int call = 0; call < 2; ++call) {
    compiled(eager.random({4, 8}, 1), eager.random({4, 8}, 2), weight, true);
    EXPECT_EQ(read, wanted) << call;
  }
}

TEST(GivenMemory, ATensorThatWasBroughtIsWrittenOverOnce) {
  Eager eager{kernel_context()};
  const auto function = [&](Value x, Value r, Value w, double threshold) {
    const Value brought = x.home().value(eager.random({4, 8}, 4).tensor());
    const Value y = normed(brought, silu(add(x, r)), w), b = mul(y, y);
    return item(total(y)) > threshold ? b : y;
  };
  auto compiled = compile(eager.context, function);
  for (const double threshold : {kNever, kAlways, kNever, kAlways})
    EXPECT_TRUE(is_same(eager, compiled, function, 4, threshold)) << threshold;
}

TEST(GivenMemory, ValuesThatAreEqualAreGivenAwayOneByOne) {
  Eager eager{kernel_context()};
  const auto function = [](Value x, Value r, Value w) {
    const Value a = silu(x), b = silu(x);
    item(total(a));
    return add(normed(a, r, w), b);
  };
  auto compiled = compile(eager.context, function);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(is_same(eager, compiled, function, 4)) << call;
}

TEST(GivenMemory, NoSecondTryFindsWhatTheFirstWroteOver) {
  Eager eager{kernel_context()};
  const auto function = [](Value x, Value r, Value w) {
    const Value y = normed(x, r, w);
    item(total(y));
    return reshape(y, {y.dim(0) * Dim(2), 4});
  };
  auto compiled = compile(eager.context, function);
  for (const std::int64_t rows : {4, 5, 4, 6, 5}) EXPECT_TRUE(is_same(eager, compiled, function, rows));
}

TEST(GivenMemory, ATensorThatEveryCallWouldFindWrittenOverIsRefused) {
  Eager eager{kernel_context()};
  const auto function = [tensor = eager.random({4, 8}, 4).tensor()](Value x, Value r, Value w) {
    return normed(x.home().value(tensor), add(x, r), w);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  EXPECT_EQ(plain_message_of([&] {
              compiled(eager.random({4, 8}), eager.random({4, 8}), eager.random({8}));
            }),
            "[f] donates a tensor that is no argument, so that the next call would find it overwritten: make it an "
            "argument, or donate a value that was computed from it");
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

TEST(GivenMemory, ColumnsOfOneMatrixDoNotMeet) {
  Eager eager{kernel_context()};
  const auto function = [](Value x, Value r, Value w, Value y) { return add(normed(x, r, w), y); };
  auto compiled = compile(eager.context, function, {.name = "f"});
  const auto call = [&](const auto& called) {
    const Value both = eager.random({4, 16});
    return called(slice(both, 1, 0, 8), eager.random({4, 8}, 2), eager.random({8}, 3), slice(both, 1, 8, 16));
  };
  EXPECT_TRUE(same_bits(call([&](auto... values) { return compiled(values...); }), call(function)));
}

TEST(GivenMemory, WhatIsUsedBehindABreakMayNotShareItEither) {
  Eager eager{kernel_context()};
  const auto function = [](Value x, Value r, Value w, Value y) {
    const Value z = normed(x, r, w);
    item(total(z));
    return add(z, y);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  const Value x = eager.random({4, 8}, 1), r = eager.random({4, 8}, 2), w = eager.random({8}, 3);
  EXPECT_NE(message_of([&] { compiled(x, r, w, x); }).find("shares memory with it"), std::string::npos);
  EXPECT_EQ(plain_message_of([&] { compiled(x, r, w, eager.random({4, 8}, 4)); }), "");
  EXPECT_NE(message_of([&] { compiled(x, r, w, x); }).find("shares memory with it"), std::string::npos);
}

TEST(GivenMemory, ValuesOfAnEagerCallMayBeKept) {
  Eager eager;
  Value kept;
  auto compiled = compile(eager.context, [&](Value x) {
    return run_eagerly({silu(x)}, [&](const Values& values) {
      kept = values[0];
      return Values{mul(values[0], values[0])};
    })[0];
  });
  const Value x = eager.random({4, 8});
  compiled(x);
  EXPECT_TRUE(same_bits(add(kept, kept), add(silu(x), silu(x))));
}

}  // namespace weft::given_memory_test
