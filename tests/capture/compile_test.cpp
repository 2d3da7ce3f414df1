// A compiled function returns what the plain function returns.

#include "capture/compile.h"

#include <map>

#include <gtest/gtest.h>

#include "ops/add.h"
#include "ops/attention.h"
#include "ops/kv_cache_update.h"
#include "ops/linear.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "tensor/batch.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::compile_test {

Value mlp(Value x, Value up, Value down) { return linear(silu(linear(x, up)), down); }

TEST(Compile, GivesTheBitsOfThePlainCall) {
  Eager eager;
  const Value x = eager.random({5, 64}), up = eager.random({96, 64}, 2), down = eager.random({64, 96}, 3);
  auto compiled = compile(eager.context, mlp);
  const Value wanted = mlp(x, up, down);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(compiled(x, up, down), wanted)) << call;
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

TEST(Compile, DoesNotRunThePlainFunctionAgain) {
  Eager eager;
  int runs = 0;
  auto compiled = compile(eager.context, [&](Value x) {
    ++runs;
    return silu(x);
  });
  const Value x = eager.random({4, 8}), y = eager.random({4, 8}, 2);
  EXPECT_TRUE(same_bits(compiled(x), silu(x)));
  EXPECT_TRUE(same_bits(compiled(y), silu(y)));
  EXPECT_EQ(runs, 1);
}

TEST(Compile, PrepareCompilesBeforeTheFirstCall) {
  Eager eager;
  int runs = 0;
  auto compiled = compile(eager.context, [&](Value x) {
    ++runs;
    return silu(x);
  });
  const Value x = eager.random({4, 8});
  compiled.prepare(x);
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(same_bits(compiled(x), silu(x)));
  EXPECT_EQ(runs, 1);
}

TEST(Compile, ResultsOfOneCallOutliveTheNext) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); });
  const Value x = eager.random({4, 8}), y = eager.random({4, 8}, 2);
  const Value first = compiled(x);
  compiled(y);
  EXPECT_TRUE(same_bits(first, silu(x)));
}

TEST(Compile, ResultsMayBeArgumentsAndViewsOfThem) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) {
    return std::tuple(x, reshape(x, {2, 16}), slice(silu(x), 1, 0, 4), 7);
  });
  const Value x = eager.random({4, 8});
  const auto [same, view, part, number] = compiled(x);
  EXPECT_EQ(same.tensor().data(), x.tensor().data());
  EXPECT_EQ(view.tensor().data(), x.tensor().data());
  EXPECT_TRUE(same_bits(view, reshape(x, {2, 16})));
  EXPECT_TRUE(same_bits(part, slice(silu(x), 1, 0, 4)));
  EXPECT_EQ(number, 7);
}

struct Layer {
  Value norm;
  std::optional<Value> bias;
  double epsilon = 1e-5;
};
void visit_members(auto&& visit, Layer& layer) { visit(layer.norm, layer.bias, layer.epsilon); }

struct Output {
  Values values;
  std::string text;
};
void visit_members(auto&& visit, Output& output) { visit(output.values, output.text); }

Output layers(Value x, const std::vector<Layer>& all, const std::map<std::string, double>& scales,
              const std::string& scale) {
  Output output;
  for (const Layer& layer : all) {
    x = rms_norm(x, layer.norm, layer.epsilon);
    if (layer.bias) x = add(x, *layer.bias);
    output.values.push_back(x);
  }
  output.values.push_back(mul_scalar(x, scales.at(scale)));
  output.text = scale + " of " + std::to_string(all.size());
  return output;
}

TEST(Compile, TakesAndGivesWhatIsNested) {
  Eager eager;
  const Value x = eager.random({3, 16});
  std::vector<Layer> all{{eager.random({16}, 2), eager.random({16}, 3)}, {eager.random({16}, 4), std::nullopt, 1e-3}};
  std::map<std::string, double> scales{{"half", 0.5}, {"twice", 2}};
  auto compiled = compile(eager.context, layers);
  const auto expect_same = [&](const std::string& scale) {
    const Output came = compiled(x, all, scales, scale), wanted = layers(x, all, scales, scale);
    EXPECT_EQ(came.text, wanted.text);
    ASSERT_EQ(came.values.size(), wanted.values.size());
    for (std::size_t i = 0; i < came.values.size(); ++i) EXPECT_TRUE(same_bits(came.values[i], wanted.values[i])) << i;
  };
  expect_same("half");
  expect_same("half");
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  expect_same("twice");
  EXPECT_EQ(compiled.captured().counts().compiled, 2);
  all[1].bias = eager.random({16}, 5);
  expect_same("half");
  all[1].epsilon = 0.5;
  expect_same("half");
  scales["half"] = 0.25;
  expect_same("half");
  all.pop_back();
  expect_same("half");
  EXPECT_EQ(compiled.captured().counts().compiled, 6);
}

// Values in maps, and in vectors of vectors: a missing, additional or renamed value makes another entry.
TEST(Compile, TakesMapsOfValuesAndVectorsOfVectors) {
  Eager eager;
  using Named = std::map<std::string, Value>;
  using Rows = std::vector<std::vector<Value>>;
  using Numbered = std::map<int, std::vector<Value>>;
  const auto function = [](const Named& named, const Rows& rows, const Numbered& numbered) {
    Value sum = named.at("a");
    for (const auto& row : rows)
      for (const Value& value : row) sum = add(sum, value);
    Named results{{"sum", sum}};
    for (const auto& [name, value] : named) results["silu of " + name] = silu(value);
    Numbered scaled;
    for (const auto& [number, values] : numbered)
      for (const Value& value : values) scaled[number].push_back(mul_scalar(value, number));
    return std::pair(results, scaled);
  };
  auto compiled = compile(eager.context, function);
  const Value x = eager.random({2, 8}, 1), y = eager.random({2, 8}, 2), z = eager.random({2, 8}, 3);
  const auto expect_same = [&](const Named& named, const Rows& rows, const Numbered& numbered) {
    for (int call = 0; call < 2; ++call) {
      const auto came = compiled(named, rows, numbered), wanted = function(named, rows, numbered);
      ASSERT_EQ(came.first.size(), wanted.first.size());
      for (const auto& [name, value] : wanted.first) EXPECT_TRUE(same_bits(came.first.at(name), value)) << name;
      ASSERT_EQ(came.second.size(), wanted.second.size());
      for (const auto& [number, values] : wanted.second) {
        ASSERT_EQ(came.second.at(number).size(), values.size()) << number;
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(same_bits(came.second.at(number)[i], values[i]));
      }
    }
  };
  expect_same({{"a", x}, {"b", y}}, {{z}, {x, y}}, {{3, {x}}, {5, {y, z}}});
  expect_same({{"a", z}, {"b", x}}, {{y}, {z, x}}, {{3, {y}}, {5, {z, x}}});
  EXPECT_EQ(compiled.captured().counts().compiled, 1) << "other tensors in the same places";
  expect_same({{"a", x}, {"c", y}}, {{z}, {x, y}}, {{3, {x}}, {5, {y, z}}});
  EXPECT_EQ(compiled.captured().counts().compiled, 2) << "another name";
  expect_same({{"a", x}, {"b", y}}, {{z, x}, {y}}, {{3, {x}}, {5, {y, z}}});
  EXPECT_EQ(compiled.captured().counts().compiled, 3) << "the same in other rows";
  expect_same({{"a", x}, {"b", y}}, {{z}, {x, y}}, {{4, {x}}, {5, {y, z}}});
  EXPECT_EQ(compiled.captured().counts().compiled, 4) << "another number";
  expect_same({{"a", x}}, {{}, {}}, {});
  EXPECT_EQ(compiled.captured().counts().compiled, 5);
}

TEST(Compile, PartsOfMapsAndVectorsMayBeMarked) {
  Eager eager;
  const auto function = [](const std::map<std::string, Value>& named, const std::vector<std::vector<Value>>& rows) {
    return add(named.at("a"), rows[1][0]);
  };
  auto compiled = compile(eager.context, function, {.name = "f", .dynamic = Dynamic::no});
  compiled.mark_dynamic("0.0", 0, {"rows", 1, 16});
  compiled.mark_dynamic("1.1.0", 0, {"rows", 1, 16});
  for (const std::int64_t rows : {2, 5, 16}) {
    const Value x = eager.random({rows, 8}, 1), y = eager.random({rows, 8}, 2);
    EXPECT_TRUE(same_bits(compiled({{"a", x}}, {{}, {y}}), add(x, y))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  const Value x = eager.random({17, 8});
  EXPECT_EQ(missing_part(plain_message_of([&] {
                           compiled({{"a", x}}, {{}, {x}});
                         }),
                         {"[f] rows", "[1, 16]", "argument 0.0 is 17"}),
            "");
}

TEST(Compile, FlagsAndArraysAreWalked) {
  Eager eager;
  const auto function = [](const std::array<Value, 2>& both, const std::vector<bool>& flags,
                           std::pair<int, float> scale) {
    Values all;
    for (std::size_t i = 0; i < flags.size(); ++i)
      all.push_back(flags[i] ? silu(both[i % 2]) : mul_scalar(both[i % 2], scale.first * scale.second));
    return std::pair(all, flags);
  };
  auto compiled = compile(eager.context, function);
  const std::array<Value, 2> both{eager.random({3, 16}), eager.random({3, 16}, 2)};
  for (const std::vector<bool>& flags : {std::vector<bool>{true, false}, {true, true}, {false}, {}, {true, false}}) {
    const auto came = compiled(both, flags, {2, 0.25F}), wanted = function(both, flags, {2, 0.25F});
    ASSERT_EQ(came.first.size(), wanted.first.size());
    for (std::size_t i = 0; i < flags.size(); ++i) EXPECT_TRUE(same_bits(came.first[i], wanted.first[i])) << i;
    EXPECT_EQ(came.second, flags);
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 4);
}

// Types whose copy refers to the same data (views) are refused by the C++ compiler.
static_assert(walking::View<std::span<Value>>);
static_assert(!walking::View<Values> && !walking::View<std::string_view> && !walking::View<std::array<Value, 2>>);

TEST(Compile, TensorsThatTheFunctionBringsAreThoseOfTheTrace) {
  Eager eager;
  const Value weight = eager.random({16}, 2);
  auto compiled =
      compile(eager.context, [tensor = weight.tensor()](Value x) { return add(x, x.home().value(tensor)); });
  const Value x = eager.random({3, 16});
  EXPECT_TRUE(same_bits(compiled(x), add(x, weight)));
  EXPECT_TRUE(same_bits(compiled(x), add(x, weight)));
}

// A step of attention over KV pages: the pages that are returned are the given ones.
TEST(Compile, StateIsWrittenInItsPlace) {
  Eager eager;
  const auto step = [](Value query, Value key, Value value, Value pages, Value slots, Value batch) {
    const Value written = kv_cache_update(key, value, pages, slots);
    return std::pair(silu(attention(query, written, batch, {}, {}, 0.25)), written);
  };
  auto compiled = compile(eager.context, step);
  compiled.mark_dynamic(0, 0, {"tokens", 1, 16});
  for (const int argument : {1, 2, 4}) compiled.mark_dynamic(argument, 0, {"tokens", 1, 16});
  const KvLayout layout{.dtype = DType::f32, .block = 4, .heads = 1, .head_dim = 16};
  for (const int rows : {3, 1, 12}) {
    const Value query = eager.random({rows, 2, 16}, 1), key = eager.random({rows, 1, 16}, 2),
                value = eager.random({rows, 1, 16}, 3);
    Tensor places = Tensor::empty(Meta::tensor(DType::i64, {rows}));
    for (int i = 0; i < rows; ++i) places.as<std::int64_t>()[i] = i;
    const Value slots = eager.home.value(places), batch = eager.home.value(make_batch({{rows, rows}}, 4));
    const Value pages = eager.home.value(Tensor::empty(Meta::pages(layout), 4)),
                others = eager.home.value(Tensor::empty(Meta::pages(layout), 4));
    const auto [came, came_pages] = compiled(query, key, value, pages, slots, batch);
    const auto [wanted, wanted_pages] = step(query, key, value, others, slots, batch);
    EXPECT_TRUE(same_bits(came, wanted)) << rows;
    EXPECT_EQ(came_pages.tensor().data(), pages.tensor().data());
    EXPECT_EQ(std::memcmp(came_pages.tensor().data(), wanted_pages.tensor().data(),
                          static_cast<std::size_t>(pages.tensor().storage->bytes())),
              0);
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

TEST(Compile, IsTracedWithTheFunctionThatCallsIt) {
  Eager eager;
  auto inner = compile(eager.context, [](Value x) { return silu(x); });
  auto outer = compile(eager.context, [&](Value x) { return add(inner(x), x); });
  const Value x = eager.random({3, 16});
  EXPECT_TRUE(same_bits(outer(x), add(silu(x), x)));
  EXPECT_EQ(inner.captured().counts().compiled, 0);
}

TEST(Compile, EmptyTensorsRunOpByOp) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); });
  const Value x = eager.random({0, 16});
  EXPECT_TRUE(same_bits(compiled(x), silu(x)));
  EXPECT_EQ(compiled.captured().counts().op_by_op, 1);
}

TEST(Compile, EnforceEagerCompilesNothing) {
  Eager eager;
  eager.context->options.enforce_eager = true;
  auto compiled = compile(eager.context, [](Value x) { return silu(x); });
  const Value x = eager.random({2, 16});
  EXPECT_TRUE(same_bits(compiled(x), silu(x)));
  EXPECT_EQ(compiled.captured().counts().compiled, 0);
}

TEST(Compile, MarkedRangesHoldWhereNothingIsCompiled) {
  const std::vector<std::function<void(Options&)>> ways{
      [](Options& options) { options.enforce_eager = true; },
      [](Options& options) { options.mode = "none"; },
      [](Options& options) { options.optimization_level = 0; },
  };
  for (const auto& way : ways) {
    Eager eager;
    way(eager.context->options);
    auto compiled = compile(eager.context, [](Value x, Value y) { return add(x, y); }, {.name = "f"});
    compiled.mark_dynamic(0, 0, {"rows", 1, 4});
    compiled.mark_dynamic(1, 0, {"rows", 1, 4});
    const auto said = [&](std::int64_t rows, std::int64_t others) {
      return plain_message_of([&] { compiled(eager.random({rows, 8}), eager.random({others, 8})); });
    };
    EXPECT_EQ(said(4, 4), "");
    EXPECT_EQ(missing_part(said(9, 9), {"[f] rows", "[1, 4]", "argument 0 is 9"}), "");
    EXPECT_EQ(missing_part(said(0, 0), {"[f] rows", "[1, 4]", "argument 0 is 0"}), "");
    EXPECT_EQ(missing_part(said(2, 1), {"[f] rows", "2 in dim 0 of argument 0", "1 in dim 0 of argument 1"}), "");
    EXPECT_EQ(missing_part(plain_message_of([&] {
                             compiled.prepare(eager.random({9, 8}), eager.random({9, 8}));
                           }),
                           {"[f] rows", "[1, 4]", "argument 0 is 9"}),
              "");
    EXPECT_EQ(compiled.captured().counts().compiled, 0);
  }
}

}  // namespace weft::compile_test
