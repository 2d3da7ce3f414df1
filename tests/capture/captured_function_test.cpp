// Errors are reported, and nothing of the failed call is kept.

#include "capture/captured_function.h"

#include <thread>

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::captured_function_test {

Value normed(Value x, Value residual, Value weight) {
  return fused_add_rms_norm(maybe_inplace, x, residual, weight, 1e-5).first;
}

TEST(CapturedFunction, WhatIsUsedAfterItWasGivenAwayIsRefused) {
  Eager eager;
  auto compiled =
      compile(eager.context, [](Value x, Value r, Value w) { return add(normed(x, r, w), x); }, {.name = "f"});
  const std::string said = message_of([&] { compiled(eager.random({4, 8}), eager.random({4, 8}), eager.random({8})); });
  EXPECT_NE(said.find("%argument_0 is used again after it was donated"), std::string::npos) << said;
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

TEST(CapturedFunction, SoItIsBehindAGraphBreak) {
  Eager eager;
  const auto function = [](Value x, Value r, Value w) {
    const Value a = silu(x), y = normed(a, r, w);
    item(sum(sum(y, 0), 1));
    return add(y, a);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  const std::string said = message_of([&] { compiled(eager.random({4, 8}), eager.random({4, 8}), eager.random({8})); });
  EXPECT_NE(said.find("was donated"), std::string::npos) << said;
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

// A buffer that one graph made, the next one donated and the third uses.
TEST(CapturedFunction, SoItIsBehindSeveral) {
  Eager eager;
  const auto function = [](Value x, Value r, Value w) {
    const Value a = silu(x);
    item(sum(sum(a, 0), 1));
    const Value y = normed(a, r, w);
    item(sum(sum(y, 0), 1));
    return add(y, a);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  const std::string said = message_of([&] { compiled(eager.random({4, 8}), eager.random({4, 8}), eager.random({8})); });
  EXPECT_NE(said.find("%silu_0 is used again after it was donated"), std::string::npos) << said;
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

TEST(CapturedFunction, ATensorThatIsGivenAwayMayNotBeGivenTwice) {
  Eager eager;
  auto compiled =
      compile(eager.context, [](Value x, Value r, Value w, Value y) { return add(normed(x, r, w), y); }, {.name = "f"});
  const Value x = eager.random({4, 8}), r = eager.random({4, 8}), w = eager.random({8});
  EXPECT_EQ(missing_part(plain_message_of([&] { compiled(x, r, w, x); }), {"[compile] argument_0", "argument_3"}), "");
  const Value both = eager.random({8, 8});
  const auto half = [&](std::int64_t start) { return slice(both, 0, start, start + 4); };
  EXPECT_EQ(plain_message_of([&] { compiled(half(0), half(4), w, r); }), "") << "halves do not meet";
}

TEST(CapturedFunction, AValueOfAnotherRunIsRefused) {
  Eager eager;
  Value kept;
  const auto keep = [&](Value x) {
    if (!kept.present()) kept = silu(mul(x, x));
    return silu(x);
  };
  auto first = compile(eager.context, keep, {.name = "first"});
  const Value x = eager.random({4, 8});
  first(x);
  auto returns = compile(eager.context, [&](Value) { return kept; }, {.name = "second"});
  const std::string said = plain_message_of([&] { returns(x); });
  EXPECT_TRUE(said.starts_with("[second] return wanted a value of this run, but was given %2 (f32[4, 8], made by silu"))
      << said;
  EXPECT_TRUE(said.ends_with(") of another")) << said;
  auto uses = compile(eager.context, [&](Value y) { return add(y, kept); }, {.name = "third"});
  EXPECT_NE(message_of([&] { uses(x); }).find("[add] wanted values of one home"), std::string::npos);
  auto concrete = compile(eager.context, [&](Value) { return x; }, {.name = "fourth"});
  EXPECT_EQ(plain_message_of([&] { concrete(x); }),
            "[fourth] return wanted a value of this run, but was given f32[4, 8] of no run: a tensor from outside "
            "enters by home().value(tensor)");
  auto none = compile(eager.context, [&](Value) { return Value(); }, {.name = "fifth"});
  EXPECT_FALSE(none(x).present());
}

TEST(CapturedFunction, AValueOfARunUnderOtherGuardsIsRefused) {
  Eager eager;
  Value kept;
  auto compiled = compile(eager.context,
                          [&](Value x, int) {
                            const Value y = mul(x, x);
                            if (!kept.present()) kept = y;
                            return add(y, kept);
                          },
                          {.name = "f"});
  const Value x = eager.random({4, 8});
  compiled(x, 1);
  const std::string said = plain_message_of([&] { compiled(x, 2); });
  EXPECT_TRUE(said.starts_with("[f] add wanted a value of this run, but was given %1 (f32[4, 8], made by mul")) << said;
}

TEST(CapturedFunction, AValueOfARunThatIsOverIsRefused) {
  Eager eager;
  Value kept;
  bool fails = false;
  auto compiled = compile(eager.context,
                          [&](Value x) {
                            kept = silu(x);
                            if (fails) throw std::runtime_error("half way");
                            return kept;
                          },
                          {.name = "f"});
  compiled.mark_dynamic(0, 0, {"tokens", 1, 16});
  const auto expect_refused = [&] {
    constexpr const char* over = " wanted a value of this run, but was given one of a run that is over";
    const auto expect_named = [](const std::string& said, const std::string& user) {
      EXPECT_TRUE(said.starts_with("[f] " + user +
                                   " wanted a value of this run, but was given %1 (f32[tokens, 8], made by silu at"))
          << said;
      EXPECT_TRUE(said.ends_with(") of a run that is over")) << said;
    };
    expect_named(plain_message_of([&] { silu(kept); }), "silu");
    expect_named(plain_message_of([&] { item(kept); }), "item()");
    EXPECT_EQ(plain_message_of([&] { extent(kept, 0); }), std::string("[f] extent()") + over);
    EXPECT_EQ(plain_message_of([&] { guard(kept, kept.dim(0) > 4); }), std::string("[f] guard()") + over);
    EXPECT_EQ(plain_message_of([&] { kept.home().value(eager.random({2}).tensor()); }),
              std::string("[f] value()") + over);
  };
  fails = true;
  EXPECT_THROW(compiled(eager.random({4, 8})), std::runtime_error);
  expect_refused();
  fails = false;
  compiled(eager.random({4, 8}));
  expect_refused();
}

TEST(CapturedFunction, TensorsOfTwoDevicesAreRefused) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x, Value y) { return add(x, y); });
  Tensor elsewhere = eager.random({4, 8}).tensor();
  elsewhere.meta.device = {DeviceType::fake_cuda, 0};
  EXPECT_EQ(plain_message_of([&] {
              compiled(eager.random({4, 8}), eager.home.value(elsewhere));
            }),
            "[add] wanted tensors on one device, but %argument_0 (f32[4, 8]) is on cpu and %argument_1 (f32[4, 8]) on "
            "fake-cuda:0");
}

TEST(CapturedFunction, ArgumentsOfTwoHomesAreRefused) {
  Eager eager;
  EagerEvaluator elsewhere(*eager.context, {1, 16});
  auto compiled =
      compile(eager.context, [](int, Value x, Values y) { return y.empty() ? x : add(x, y[0]); }, {.name = "f"});
  const Value x = eager.random({4, 8}), y = elsewhere.value(eager.random({4, 8}, 2).tensor());
  const std::string wanted =
      "[f] wanted values of one home, but argument 2.0 is of another than argument 1: values of two Compilers do not "
      "meet; value(tensor) of one takes a tensor of the other";
  EXPECT_EQ(plain_message_of([&] { compiled(1, x, {y}); }), wanted);
  EXPECT_EQ(plain_message_of([&] { compiled.prepare(1, x, {y}); }), wanted);
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
  EXPECT_TRUE(same_bits(compiled(1, x, {x}), add(x, x)));
  EXPECT_EQ(plain_message_of([&] { compiled(1, x, {y}); }), wanted) << "guards would let them in";
  EXPECT_TRUE(same_bits(compiled(1, y, {y}), add(y, y))) << "those of another home alone are as good";
  eager.context->options.enforce_eager = true;
  auto plain = compile(eager.context, [](Value a, Value) { return silu(a); }, {.name = "g"});
  EXPECT_TRUE(plain_message_of([&] { plain(x, y); }).starts_with("[g] wanted values of one home, but argument 1 is"));
}

TEST(CapturedFunction, IsForTheCpu) {
  Eager eager;
  eager.context->device.id = {DeviceType::fake_cuda, 0};
  EXPECT_EQ(missing_part(plain_message_of([&] { compile(eager.context, [](Value x) { return silu(x); }); }),
                         {"[compile]", "cpu", "fake-cuda:0"}),
            "");
}

TEST(CapturedFunction, MayNotCallItself) {
  Eager eager;
  std::function<Value(Value)> again;
  auto compiled = compile(eager.context, [&](Value x) { return again ? again(x) : silu(x); }, {.name = "f"});
  again = [&](Value x) { return compiled(x); };
  const Value x = eager.random({4, 8});
  EXPECT_EQ(missing_part(plain_message_of([&] { compiled(x); }), {"[f]", "within itself"}), "");
  again = nullptr;
  EXPECT_TRUE(same_bits(compiled(x), silu(x)));
}

TEST(CapturedFunction, AnExceptionLeavesNothingHalfDone) {
  Eager eager;
  int fails_at = 1;
  const auto function = [&](Value x) {
    const Value y = silu(x);
    if (fails_at == 1) throw std::runtime_error("before the break");
    const bool is_large = item(sum(sum(y, 0), 1)) > 0;
    if (fails_at == 2) throw std::runtime_error("behind it");
    return is_large ? mul(y, y) : add(y, y);
  };
  auto compiled = compile(eager.context, function);
  const Value x = eager.random({4, 8});
  for (; fails_at <= 2; ++fails_at) {
    EXPECT_THROW(compiled(x), std::runtime_error);
    EXPECT_EQ(compiled.captured().entry_count(), 0u);
  }
  EXPECT_TRUE(same_bits(compiled(x), function(x)));
  fails_at = 2;
  EXPECT_THROW(compiled(x), std::runtime_error);
  fails_at = 0;
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    const Value y = eager.random({4, 8}, seed);
    EXPECT_TRUE(same_bits(compiled(y), function(y)));
  }
  EXPECT_EQ(compiled.captured().entry_count(), 1u);
}

// Takes another branch after a graph break for each factor.
Value way_of(Value x, double factor, bool fails) {
  const Value y = silu(x);
  item(sum(sum(y, 0), 1));
  const Value z = mul_scalar(y, factor);
  if (fails) throw std::runtime_error("on a new way");
  return z;
}

TEST(CapturedFunction, AnExceptionOnANewWayLeavesTheOthers) {
  Eager eager;
  double factor = 2;
  bool fails = false;
  const auto function = [&](Value x) { return way_of(x, factor, fails); };
  auto compiled = compile(eager.context, function, {.recompile_limit = 2});
  const Value x = eager.random({4, 8});
  compiled(x);
  fails = true;
  for (factor = 3; factor < 8; ++factor) EXPECT_THROW(compiled(x), std::runtime_error);
  fails = false;
  for (const double one : {2.0, 9.0, 2.0, 9.0}) {
    factor = one;
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << one;
  }
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0) << "two ways are within the limit";
}

TEST(CapturedFunction, AnExceptionOnOneWayTooManyLeavesTheOthers) {
  Eager eager;
  double factor = 2;
  bool fails = false;
  const auto function = [&](Value x) { return way_of(x, factor, fails); };
  auto compiled = compile(eager.context, function, {.recompile_limit = 1});
  const Value x = eager.random({4, 8});
  compiled(x);
  fails = true;
  factor = 3;
  EXPECT_THROW(compiled(x), std::runtime_error);
  fails = false;
  factor = 2;
  EXPECT_TRUE(same_bits(compiled(x), function(x)));
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

TEST(CapturedFunction, ThreadsTakeTurnsFromTheFirstUseOn) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return mul(silu(x), x); });
  std::vector<Value> inputs, wanted, came(8);
  for (std::uint64_t i = 0; i < came.size(); ++i) {
    inputs.push_back(eager.random({4, 8}, i + 1));
    wanted.push_back(mul(silu(inputs[i]), inputs[i]));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < came.size(); ++i)
    threads.emplace_back([&, i] {
      for (int call = 0; call < 20; ++call) came[i] = compiled(inputs[i]);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < came.size(); ++i) EXPECT_TRUE(same_bits(came[i], wanted[i])) << i;
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

TEST(CapturedFunction, RetracingFindsWhatChangedBesideTheArguments) {
  Eager eager;
  double factor = 2;
  auto compiled =
      compile(eager.context, [&](Value x) { return mul_scalar(silu(x), factor); }, {.name = "f", .check_retrace = 3});
  const Value x = eager.random({4, 8});
  for (int call = 0; call < 7; ++call) compiled(x);
  EXPECT_EQ(compiled.captured().counts().retraces, 2);
  factor = 3;
  compiled(x);
  compiled(x);
  EXPECT_EQ(
      plain_message_of([&] { compiled(x); }),
      "[f] wanted a function that does the same in every call, but step 1 was mul_scalar(%1, value=2.0) and is now "
      "mul_scalar(%1, value=3.0): it reads something besides its arguments that has changed");
}

TEST(CapturedFunction, RetracingFindsAnotherTensorAndAnotherEnd) {
  Eager eager;
  Tensor brought = eager.random({4, 8}, 5).tensor();
  bool ends = false;
  auto compiled = compile(eager.context,
                          [&](Value x) {
                            const Value y = add(x, x.home().value(brought));
                            return ends ? y : silu(y);
                          },
                          {.name = "f", .check_retrace = 1});
  const Value x = eager.random({4, 8});
  compiled(x);
  compiled(x);
  ends = true;
  EXPECT_NE(message_of([&] { compiled(x); }).find("step 2 was silu(%2) and is now the return"), std::string::npos)
      << message_of([&] { compiled(x); });
  ends = false;
  brought = eager.random({4, 8}, 5).tensor();
  EXPECT_NE(message_of([&] {
              compiled(x);
            }).find("step 0 was a tensor that it brought and is now another tensor that it brought"),
            std::string::npos)
      << message_of([&] { compiled(x); });
}

TEST(CapturedFunction, OptionsAreChecked) {
  Eager eager;
  const auto said = [&](CompileOptions options) {
    return plain_message_of([&] {
      compile(
          eager.context, [](Value x) { return x; }, options);
    });
  };
  EXPECT_EQ(said({.name = "f", .recompile_limit = 0}), "[f] recompile_limit must be at least 1");
  EXPECT_EQ(missing_part(said({.name = "f", .check_retrace = -1}), {"[f]", "check_retrace", "-1"}), "");
  EXPECT_NE(said({.recompile_limit = 0}).find("[captured_function_test.cpp:"), std::string::npos);
}

}  // namespace weft::captured_function_test
