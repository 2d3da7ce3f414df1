// Functions that read Values: each read ends a graph, and compiled code gives the bits of a plain call.

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "capture/compile.h"
#include "capture/run_eagerly.h"
#include "ir/op.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/amax.h"
#include "ops/exp.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/silu.h"
#include "ops/sub.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::graph_breaks_test {

Value total(Value x) { return sum(reshape(x, {1, 32}), 1); }

// Runs the plain and the compiled function three times on these inputs; returns the log of breaks.
template <class Function>
std::string expect_same(Function function, const std::vector<Value>& inputs, Eager& eager, int graphs) {
  std::ostringstream& said = eager.log("graph_breaks");
  auto compiled = compile(eager.context, function, {.name = "f"});
  for (int round = 0; round < 3; ++round)
    for (const Value& x : inputs) EXPECT_TRUE(same_bits(compiled(x), function(x))) << round;
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
  const std::string text = said.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), graphs) << text;
  return text;
}

TEST(GraphBreaks, ItemGivesTheNumberAndEndsTheGraph) {
  Eager eager;
  const auto log = expect_same(
      [](Value x) {
        const Value y = silu(x);
        return item(total(y)) > 0 ? mul_scalar(y, 2.0) : mul_scalar(y, 3.0);
      },
      {eager.random({4, 8}, 1), eager.random({4, 8}, 2), eager.random({4, 8}, 3)}, eager, 1);
  EXPECT_NE(log.find("[graph_breaks] f: item() at "), std::string::npos) << log;
  EXPECT_NE(log.find("graph_breaks_test.cpp:"), std::string::npos) << log;
  EXPECT_NE(log.find(" ends a graph of 3 ops"), std::string::npos) << log;
}

// A value that was read decides which attributes a call leaves out, so every call is compared with one that has other
// attributes.
TEST(GraphBreaks, AttributesThatAreLeftOutAreTheirDefaults) {
  Eager eager;
  const Value weight = eager.random({8}, 9);
  const auto function = [&](Value x) {
    const Value w = x.home().value(weight.tensor());
    switch (static_cast<int>(item(amax(reshape(x, {1, 8}), 1)))) {
      case 1:
        return rms_norm(x, w, 1e-5, 4);
      case 2:
        return call(CallSite::current(), "rms_norm", {x, w}, {{"epsilon", 1e-5}})[0];
      case 3:
        return rms_norm(x, w, 1e-6);
      default:
        return call(CallSite::current(), "rms_norm", {x, w}, {{"variance_size", Attribute()}, {"epsilon", 1e-5}})[0];
    }
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  for (int round = 0; round < 3; ++round)
    for (const float largest : {1.0F, 2.0F, 3.0F, 4.0F, 2.0F, 1.0F}) {
      std::vector<float> numbers(8, 0.25F);
      numbers[5] = largest;
      const Value x = eager.home.value(Tensor::from_bytes(Meta::tensor(DType::f32, {1, 8}), numbers.data()));
      EXPECT_TRUE(same_bits(compiled(x), function(x))) << largest;
    }
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

// The same numbers under each other's names.
TEST(GraphBreaks, AttributesAreToldByTheirNames) {
  Eager eager;
  const auto function = [&](Value x) {
    const double first = 0.25, second = 0.5;
    if (item(amax(reshape(x, {1, 8}), 1)) > 1.5)
      return call(CallSite::current(), "clamp", {x}, {{"min", first}, {"max", second}})[0];
    return call(CallSite::current(), "clamp", {x}, {{"max", first}, {"min", second}})[0];
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  for (int round = 0; round < 3; ++round)
    for (const float largest : {1.0F, 1.0F, 2.0F, 2.0F}) {
      std::vector<float> numbers{0.0F, 0.1F, 0.3F, 0.4F, 0.6F, 0.7F, 0.2F, largest};
      const Value x = eager.home.value(Tensor::from_bytes(Meta::tensor(DType::f32, {1, 8}), numbers.data()));
      EXPECT_TRUE(same_bits(compiled(x), function(x))) << largest;
    }
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

// A call is compared first with the step that was there last time, which differs from it in one thing.
TEST(GraphBreaks, CallsThatDifferInOneThingAreDifferentWays) {
  using Calls = Value (*)(const Value& x, const Value& y, const Value& w);
  const Calls not_in_place = [](const Value& x, const Value& y, const Value& w) {
    return add(fused_add_rms_norm(y, x, w, 1e-5).first, y);
  };
  const Calls in_place = [](const Value& x, const Value& y, const Value& w) {
    return fused_add_rms_norm(maybe_inplace, y, x, w, 1e-5).first;
  };
  const Calls pairs[][2] = {
      {[](const Value& x, const Value& y, const Value&) { return sub(x, y); },
       [](const Value& x, const Value& y, const Value&) { return sub(y, x); }},
      {[](const Value& x, const Value& y, const Value&) { return sub(x, y); },
       [](const Value& x, const Value& y, const Value&) { return add(x, y); }},
      {[](const Value&, const Value& y, const Value& w) { return rms_norm(y, w, 1e-5); },
       [](const Value&, const Value& y, const Value& w) { return rms_norm(y, w, 1e-2); }},
      {[](const Value&, const Value& y, const Value& w) { return rms_norm(y, w, 1e-5); },
       [](const Value&, const Value& y, const Value&) { return rms_norm(y, {}, 1e-5); }},
      {in_place, not_in_place},
  };
  for (const auto& [first, second] : pairs) {
    Eager eager;
    const Value weight = eager.random({8}, 9);
    const auto function = [&, first = first, second = second](Value x) {
      const Value w = x.home().value(weight.tensor());
      const Value y = exp(x);
      return item(amax(reshape(x, {1, 8}), 1)) < 2 ? first(x, y, w) : second(x, y, w);
    };
    auto compiled = compile(eager.context, function, {.name = "f"});
    for (const float largest : {1.0F, 3.0F, 1.0F, 3.0F}) {
      std::vector<float> numbers(8, 0.25F);
      numbers[5] = largest;
      const auto made = [&] {
        return eager.home.value(Tensor::from_bytes(Meta::tensor(DType::f32, {1, 8}), numbers.data()));
      };
      EXPECT_TRUE(same_bits(compiled(made()), function(made()))) << &first - &pairs[0][0] << ", " << largest;
    }
    EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
  }
}

TEST(GraphBreaks, TruthOfATensor) {
  Eager eager;
  const auto log =
      expect_same([](Value x) { return is_true(total(x)) ? silu(x) : x; }, {eager.random({4, 8})}, eager, 1);
  EXPECT_NE(log.find("is_true()"), std::string::npos) << log;
}

TEST(GraphBreaks, ALoopWhoseBoundIsAValue) {
  Eager eager;
  const auto function = [](Value x) {
    const int rounds = static_cast<int>(item(amax(amax(x, 1), 0)) * 3) + 1;
    for (int i = 0; i < rounds; ++i) x = silu(x);
    return x;
  };
  expect_same(function, {eager.random({4, 8}, 1), mul_scalar(eager.random({4, 8}, 2), 0.2)}, eager, 1);
}

TEST(GraphBreaks, Numbers) {
  Eager eager;
  const auto log = expect_same([](Value x) { return mul_scalar(x, numbers(sum(x, 1))[2] > 0 ? 1.0 : 2.0); },
                               {eager.random({4, 8})}, eager, 1);
  EXPECT_NE(log.find("numbers()"), std::string::npos) << log;
}

TEST(GraphBreaks, Printing) {
  Eager eager;
  std::vector<std::string> printed;
  const Value x = eager.random({4, 8});
  const auto log = expect_same(
      [&](Value v) {
        v = silu(v);
        printed.push_back(to_text(v));
        return mul(v, v);
      },
      {x}, eager, 1);
  EXPECT_NE(log.find("to_text()"), std::string::npos) << log;
  ASSERT_EQ(printed.size(), 6u) << "side effects happen each time";
  for (const std::string& text : printed) EXPECT_EQ(text, to_text(silu(x)));
}

TEST(GraphBreaks, ACallThatIsToRunEagerly) {
  Eager eager;
  int runs = 0;
  const auto log = expect_same(
      [&](Value x) {
        const Value a = silu(x), b = mul(a, a);
        const Values back = run_eagerly({a, b}, [&](const Values& values) {
          EXPECT_TRUE(values[0].has_data() && values[1].has_data());
          ++runs;
          return Values{add(values[0], values[1])};
        });
        return mul(back[0], x);
      },
      {eager.random({4, 8}), eager.random({4, 8}, 2)}, eager, 1);
  EXPECT_NE(log.find("run_eagerly()"), std::string::npos) << log;
  EXPECT_EQ(runs, 12);
}

// Its result may be its argument, which is memory of the previous compiled graph.
TEST(GraphBreaks, WhatAnEagerCallHandsThroughOutlivesTheNextCall) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) {
    return run_eagerly({silu(x)}, [](const Values& values) { return Values{reshape(values[0], {32})}; })[0];
  });
  const Value x = eager.random({4, 8}), y = eager.random({4, 8}, 2);
  compiled(x);
  const Value first = compiled(x);
  compiled(y);
  EXPECT_TRUE(same_bits(first, reshape(silu(x), {32})));
}

TEST(GraphBreaks, AnArgumentIsKnownAndEndsNothing) {
  Eager eager;
  expect_same([](Value x) { return numbers(x)[0] > 0 ? silu(x) : mul(x, x); },
              {eager.random({4, 8}, 1), eager.random({4, 8}, 2), eager.random({4, 8}, 3), eager.random({4, 8}, 4)},
              eager, 0);
}

// A kernel that may not be captured runs between captured steps, which does not end the graph.
TEST(GraphBreaks, AKernelThatCannotBeCapturedIsNone) {
  Eager eager{kernel_context()};
  Kernel opaque = *eager.context->kernels.find("exp", "reference");
  opaque.provider = "opaque";
  opaque.launch_graph = LaunchGraphClass::never;
  eager.context->kernels.add(std::move(opaque));
  eager.context->priorities.set("exp", {"opaque"});
  const auto function = [](Value x) { return mul(exp(mul(x, x)), x); };
  auto compiled = compile(eager.context, function, {.fullgraph = true});
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    const Value x = eager.random({4, 8}, seed);
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << seed;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

// An opaque op, as plugins have, whose kernel says nothing about captures, or that it may be captured.
class OpaqueOp : public ::testing::Test {
 protected:
  static Value function(Value x) { return mul(call("opaque_twice", {mul(x, x)}, {})[0], silu(x)); }

  Eager eager_with(LaunchGraphClass capture) {
    Registrations plugin("the test's plugin");
    plugin.register_op("opaque_twice", [](OpDefinition& op) {
      op.schema("opaque_twice(Tensor x) -> Tensor").gives_like("x");
      op.sample({{"x", {2, 3}}});
    });
    const auto run = [this](const KernelCall& call) {
      ++calls_;
      for (std::int64_t i = 0; i < call.results[0].elements(); ++i)
        call.results[0].as<float>()[i] = 2 * call.operands[0].as<float>()[i];
    };
    plugin.register_impl("opaque_twice", "opaque", run, {.launch_graph = capture});
    return Eager{make_context(Options(), std::move(plugin))};
  }

  int calls_ = 0;
};

TEST_F(OpaqueOp, WithoutACaptureClassEndsAGraph) {
  Eager eager = eager_with(LaunchGraphClass::never);
  auto compiled = compile(eager.context, function);
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const Value x = eager.random({seed < 4 ? 4 : 6, 8}, seed), wanted = function(x);
    calls_ = 0;
    EXPECT_TRUE(same_bits(compiled(x), wanted)) << seed;
    EXPECT_EQ(calls_, 1) << seed;
  }
  EXPECT_GE(compiled.captured().counts().compiled, 2) << "what stands before it, and what stands behind it";
  auto whole = compile(eager.context, function, {.fullgraph = true});
  const std::string said = message_of([&] { whole(eager.random({4, 8}, 1)); });
  EXPECT_NE(said.find("opaque_twice asks what a value holds"), std::string::npos) << said;
}

TEST_F(OpaqueOp, ThatMayBeCapturedEndsNone) {
  Eager eager = eager_with(LaunchGraphClass::always);
  auto compiled = compile(eager.context, function, {.fullgraph = true});
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    const Value x = eager.random({4, 8}, seed), wanted = function(x);
    calls_ = 0;
    EXPECT_TRUE(same_bits(compiled(x), wanted)) << seed;
    EXPECT_EQ(calls_, 1) << "it is called, not replayed";
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

TEST(GraphBreaks, SeveralInARow) {
  Eager eager;
  expect_same(
      [](Value x) {
        for (int i = 0; i < 3; ++i) x = mul_scalar(silu(x), item(total(x)) > 0 ? 1.5 : -0.5);
        return x;
      },
      {eager.random({4, 8}, 1), eager.random({4, 8}, 2)}, eager, 5);
}

// The first branch, for which the graph was compiled, did not use the value that the second branch needs.
TEST(GraphBreaks, WhatAnotherWayWantsIsThere) {
  Eager eager;
  const auto function = [](Value x) {
    const Value a = silu(x), b = mul(a, a), c = add(b, x);
    return item(total(x)) > 0 ? c : mul(a, b);
  };
  Value up = eager.random({4, 8}, 1);
  if (item(total(up)) < 0) up = mul_scalar(up, -1.0);
  expect_same(function, {up, mul_scalar(up, -1.0)}, eager, 1);
}

TEST(GraphBreaks, GivenAwayBeforeAndBehind) {
  Eager eager;
  const Value weight = eager.random({8}, 9);
  const auto function = [tensor = weight.tensor()](Value x) {
    const Value w = x.home().value(tensor);
    const Value a = silu(x), b = mul(x, x);
    const auto [y, residual] = fused_add_rms_norm(maybe_inplace, a, b, w, 1e-5);
    const bool is_large = item(total(y)) > 0;
    const auto [z, r] = fused_add_rms_norm(maybe_inplace, y, residual, w, 1e-5);
    return is_large ? z : add(z, r);
  };
  expect_same(function, {eager.random({4, 8}, 1), eager.random({4, 8}, 2), eager.random({4, 8}, 3)}, eager, 1);
}

TEST(GraphBreaks, WithFullgraphAreErrorsThatNameTheLine) {
  Eager eager;
  int line = 0;
  const auto function = [&](Value x) {
    line = __LINE__ + 1;
    return item(total(x)) > 0 ? x : silu(x);
  };
  auto compiled = compile(eager.context, function, {.name = "f", .fullgraph = true});
  const std::string said = message_of([&] { compiled(eager.random({4, 8})); });
  EXPECT_NE(said.find("[f] item() asks what a value holds"), std::string::npos) << said;
  EXPECT_NE(said.find("graph_breaks_test.cpp:" + std::to_string(line)), std::string::npos) << said;
  EXPECT_NE(said.find("leave fullgraph out"), std::string::npos) << said;
  EXPECT_EQ(compiled.captured().entry_count(), 0u);
}

TEST(GraphBreaks, SizesMayBeSymbolsBesideThem) {
  Eager eager;
  const auto function = [](Value x) {
    const Value y = silu(x);
    const Value scaled = item(sum(sum(y, 0), 1)) > 0 ? y : mul_scalar(y, -1.0);
    return guard(x, x.dim(0) > 4) ? mul(scaled, x) : add(scaled, x);
  };
  auto compiled = compile(eager.context, function);
  compiled.mark_dynamic(0, 0, {"rows", 1, 64});
  for (int rows = 1; rows <= 9; ++rows) {
    const Value x = eager.random({rows, 8}, static_cast<std::uint64_t>(rows));
    EXPECT_TRUE(same_bits(compiled(x), function(x))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

}  // namespace weft::graph_breaks_test
