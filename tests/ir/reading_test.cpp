// Reads of Values and their sizes: answers on concrete ones, errors with a line if there is no data.

#include "ir/reading.h"

#include <gtest/gtest.h>

#include "compiler/run/eager.h"
#include "ir/trace.h"
#include "ops/constant.h"
#include "ops/slice.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::reading_test {

struct Home {
  std::shared_ptr<Context> context = kernel_context();
  EagerEvaluator evaluator{*context, {1, 512}};
  Value of(std::vector<double> values, DType dtype = DType::f32, std::optional<Shape> shape = std::nullopt) {
    return constant(evaluator, std::move(values), std::move(shape), dtype);
  }
};

TEST(Reading, ConcreteValuesAnswer) {
  Home home;
  EXPECT_EQ(item(home.of({-2.5})), -2.5);
  EXPECT_EQ(item(home.of({7}, DType::i64)), 7);
  EXPECT_EQ(item(home.of({1.5}, DType::bf16, Shape{})), 1.5);
  EXPECT_TRUE(is_true(home.of({-0.5})));
  EXPECT_FALSE(is_true(home.of({0}, DType::i32)));
  const Value square = home.of({1, 2, 3, 4, 5, 6}, DType::f32, Shape{2, 3});
  EXPECT_EQ(numbers(slice(square, 1, 1, 3)), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(to_text(square), "f32[2, 3] (1, 2, 3, 4, 5, 6)");
  EXPECT_EQ(to_text(home.of({1, 2, 3, 4, 5, 6, 7, 8, 9.5})), "f32[9] (1, 2, 3, 4, 5, 6, 7, 8, ...)");
  EXPECT_TRUE(guard(square, square.dim(0) < square.dim(1)));
  EXPECT_FALSE(guard(square, equal(square.dim(0), 3)));
  EXPECT_EQ(extent(square, -1), 3);
}

TEST(Reading, WantsOneElement) {
  Home home;
  const std::string said = message_of([&] { item(home.of({1, 2})); });
  EXPECT_NE(said.find("[item()] wanted one element, but is f32[2] ("), std::string::npos) << said;
  EXPECT_NE(said.find("reading_test.cpp:"), std::string::npos) << said;
}

TEST(Reading, WhatIsTracedForAllRunsHasNoAnswers) {
  Home home;
  Graph graph;
  Trace trace(home.context->ops, graph);
  const Value x = trace.input("x", Meta::tensor(DType::f32, {Dim::symbol("s0"), 8}));
  EXPECT_NE(message_of([&] { item(x); }).find("[item()] wanted a value with data"), std::string::npos);
  EXPECT_NE(message_of([&] { guard(x, x.dim(0) > 4); }).find("4 < s0 depends on them"), std::string::npos);
  EXPECT_NE(message_of([&] { extent(x, 0); }).find("the size is s0"), std::string::npos);
  EXPECT_TRUE(guard(x, x.dim(1) > 4)) << "a number is no question";
  EXPECT_EQ(extent(x, 1), 8);
}

}  // namespace weft::reading_test
