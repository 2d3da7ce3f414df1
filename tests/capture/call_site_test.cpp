// Whatever a function does wrong, the error names the line of its code: of the op that cannot be, of the question that
// has no answer, else of the call.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/linear.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::call_site_test {

// The text of this location in a message.
std::string place(int line) { return fmt::format("{}:{}", std::source_location::current().file_name(), line); }

// Whether the message ends with this location and names no other.
void expect_at(const std::string& message, int line) {
  EXPECT_TRUE(message.ends_with(fmt::format("(at {})", place(line)))) << message << "\nwanted line " << line;
  EXPECT_EQ(message.find("(at "), message.rfind("(at ")) << message;
}

TEST(CallSite, AnOpThatDoesNotFitNamesItsLineNotThatOfItsMeaning) {
  Eager eager;
  const Value x = eager.random({4, 8}), weight = eager.random({7});
  const int line = __LINE__ + 1;
  const auto function = [](Value rows, Value factors) { return fused_add_rms_norm(rows, rows, factors, 1e-5).first; };
  expect_at(message_of([&] { function(x, weight); }), line);
  auto compiled = compile(eager.context, function);
  expect_at(message_of([&] { compiled(x, weight); }), line);
}

TEST(CallSite, ACallWithoutOneNamesNone) {
  Eager eager;
  const Value x = eager.random({4, 8}), weight = eager.random({7});
  const std::string said = message_of([&] { call("rms_norm", {x, weight}, {{"epsilon", 1e-5}}); });
  EXPECT_NE(said.find("rms_norm"), std::string::npos) << said;
  EXPECT_EQ(said.find("(at "), std::string::npos) << said;
}

TEST(CallSite, WhatIsUsedAfterItWasGivenAwayNamesBothLines) {
  Eager eager;
  const int line = __LINE__ + 2;
  const auto function = [](Value x, Value residual) {
    const Value y = fused_add_rms_norm(maybe_inplace, x, residual, {}, 1e-5).first;
    return add(y, x);
  };
  auto compiled = compile(eager.context, function);
  const Value x = eager.random({4, 8}), residual = eager.random({4, 8});
  const std::string said = message_of([&] { compiled(x, residual); });
  EXPECT_NE(said.find(place(line) + ", `"), std::string::npos) << said;
  EXPECT_NE(said.find(place(line + 1) + ", `"), std::string::npos) << said;
}

TEST(CallSite, AValueOfAnotherFunctionAndOfAnotherDevice) {
  Eager eager;
  Value kept;
  auto first = compile(eager.context, [&](Value x) { return kept = silu(x); });
  const Value x = eager.random({4, 8});
  first(x);
  const int line = __LINE__ + 1;
  auto second = compile(eager.context, [&](Value y) { return add(y, kept); });
  expect_at(message_of([&] { second(x); }), line);
  auto third = compile(eager.context, [&](Value) { return kept; });
  const int call = __LINE__ + 1;
  expect_at(message_of([&] { third(x); }), call);

  Tensor elsewhere = eager.random({4, 8}).tensor();
  elsewhere.meta.device = {DeviceType::fake_cuda, 0};
  const int sum_line = __LINE__ + 1;
  auto across = compile(eager.context, [](Value a, Value b) { return add(a, b); });
  expect_at(message_of([&] { across(x, eager.home.value(elsewhere)); }), sum_line);
}

TEST(CallSite, ACallOfItself) {
  Eager eager;
  std::function<Value(Value)> again = [](Value x) { return x; };
  auto compiled = compile(eager.context, [&](Value x) { return again(x); });
  const int line = __LINE__ + 1;
  again = [&](Value x) { return compiled(x); };
  const Value x = eager.random({4, 8});
  expect_at(message_of([&] { compiled(x); }), line);
}

TEST(CallSite, RangesAndSizesOutOfThem) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); }, {.name = "f"});
  const std::string reversed = message_of([&] { compiled.mark_dynamic(0, 0, {"tokens", 5, 2}); });
  expect_at(reversed, __LINE__ - 1);
  EXPECT_NE(reversed.find("tokens must have 0 <= min <= max, but is [5, 2]"), std::string::npos) << reversed;
  compiled.mark_unbacked(0, 0, {"tokens", 1, 6});
  const Value x = eager.random({7, 8});
  const std::string outside = message_of([&] { compiled(x); });
  expect_at(outside, __LINE__ - 1);
  EXPECT_NE(outside.find("tokens must be in [1, 6], but dim 0 of argument 0 is 7"), std::string::npos) << outside;
  const std::string prepared = message_of([&] { compiled.prepare(x); });
  expect_at(prepared, __LINE__ - 1);
}

TEST(CallSite, WhatItCapturedAndHasChanged) {
  Eager eager;
  double factor = 2;
  const int line = __LINE__ + 1;
  auto compiled = compile(eager.context, [&](Value x) { return mul_scalar(x, factor); }, {.check_retrace = 1});
  const Value x = eager.random({4, 8});
  compiled(x);
  factor = 3;
  expect_at(message_of([&] {
              compiled(x);
              compiled(x);
            }),
            line);
}

TEST(CallSite, AQuestionWithFullgraph) {
  Eager eager;
  const int line = __LINE__ + 1;
  const auto function = [](Value x) { return item(sum(sum(x, 0), 1)) > 0 ? silu(x) : sigmoid(x); };
  auto compiled = compile(eager.context, function, {.fullgraph = true});
  const Value x = eager.random({4, 8});
  expect_at(message_of([&] { compiled(x); }), line);
}

}  // namespace weft::call_site_test
