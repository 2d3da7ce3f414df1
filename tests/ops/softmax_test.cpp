#include "ops/softmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "ops/amax.h"
#include "ops/sum.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::softmax_test {

class Softmax : public testing::Test {
 protected:
  Tensor made(DType dtype, const Shape& shape, std::uint64_t seed) {
    SampleTensor sample("x", {}, dtype);
    for (const Dim& dim : shape) sample.shape.push_back(dim.number());
    return make_sample_tensor(sample, dtype, seed);
  }
  template <class Function>
  Tensor run(const Tensor& x, Function function) {
    return function(values_of(interpreter_, {x})[0]).tensor();
  }

  std::shared_ptr<Context> context_ = test_context();
  Interpreter interpreter_{*context_};
};

// Calls body(first, step, count) for the elements along `axis`, of which element i is at first + i * step.
template <class Body>
void for_each_line(const Shape& shape, std::size_t axis, Body body) {
  std::int64_t inner = 1, count = shape[axis].number();
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i].number();
  const std::int64_t elements = element_count(shape).number();
  for (std::int64_t outer = 0; outer < elements; outer += inner * count)
    for (std::int64_t i = 0; i < inner; ++i) body(outer + i, inner, count);
}

TEST_F(Softmax, IsTheFormulaAlongEveryDim) {
  const Shape shape{3, 70, 5};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (std::int64_t dim = -3; dim < 3; ++dim) {
      SCOPED_TRACE(std::string(dtype_text(dtype)) + " dim " + std::to_string(dim));
      const Tensor x = made(dtype, shape, 11);
      const std::vector<double> from = elements_of(x);
      const Tensor result = run(x, [&](const Value& value) { return softmax(value, dim); });
      EXPECT_EQ(result.meta, x.meta);
      const std::vector<double> came = elements_of(result);
      const Tolerance tolerance = context_->ops.at("softmax").tolerance(dtype);
      for_each_line(shape, static_cast<std::size_t>((dim + 3) % 3),
                    [&](std::int64_t at, std::int64_t step, std::int64_t count) {
                      double sum = 0;
                      for (std::int64_t i = 0; i < count; ++i)
                        sum += std::exp(from[static_cast<std::size_t>(at + i * step)]);
                      for (std::int64_t i = 0; i < count; ++i) {
                        const auto element = static_cast<std::size_t>(at + i * step);
                        const double wanted = std::exp(from[element]) / sum;
                        EXPECT_NEAR(came[element], wanted, tolerance.absolute + tolerance.relative * wanted)
                            << "element " << element;
                      }
                    });
    }
}

TEST_F(Softmax, HoldsLargeNumbersAndLeavesNanWhereThereIsNoAnswer) {
  const float infinity = INFINITY;
  const std::vector<float> rows = {1e30f,     1e30f,     -1e30f,     // half each
                                   -infinity, 0,         -infinity,  // all in one
                                   NAN,       0,         1,          //
                                   infinity,  0,         1,          //
                                   -infinity, -infinity, -infinity};
  const Tensor x = Tensor::from_bytes(Meta::tensor(DType::f32, {5, 3}), rows.data());
  const std::vector<double> came = elements_of(run(x, [](const Value& value) { return softmax(value); }));
  EXPECT_EQ(std::vector<double>(came.begin(), came.begin() + 6), (std::vector<double>{0.5, 0.5, 0, 0, 1, 0}));
  for (std::size_t i = 6; i < came.size(); ++i) EXPECT_TRUE(std::isnan(came[i])) << "element " << i;
}

TEST_F(Softmax, RefusesADimThatIsNotThereAndWholeNumbers) {
  const auto message = [&](const Meta& x, std::int64_t dim) -> std::string {
    return message_of([&] {
      const std::optional<Meta> operand = x;
      infer_results(context_->ops.at("softmax"), context_->ops, {&operand, 1}, {{"dim", dim}});
    });
  };
  const Meta x = Meta::tensor(DType::f32, {2, 3});
  EXPECT_EQ(message(x, 1), "");
  EXPECT_NE(message(x, 2).find("[softmax] dim must be an axis of f32[2, 3], but is 2"), std::string::npos);
  EXPECT_NE(message(x, -3).find("[softmax] dim must be an axis of f32[2, 3], but is -3"), std::string::npos);
  EXPECT_NE(message(Meta::tensor(DType::f32, {}), -1).find("[softmax] dim must be an axis"), std::string::npos);
  EXPECT_NE(message(Meta::tensor(DType::i8, {2, 3}), -1).find("[softmax] x must be a floating"), std::string::npos);
}

TEST_F(Softmax, RestsOnSumsAndMaximaAlongEveryDim) {
  const Shape shape{2, 3, 4};
  const Tensor x = made(DType::f32, shape, 5);
  const std::vector<double> from = elements_of(x);
  for (std::int64_t dim = -3; dim < 3; ++dim) {
    const auto axis = static_cast<std::size_t>((dim + 3) % 3);
    const Tensor total = run(x, [&](const Value& value) { return sum(value, dim); });
    const Tensor largest = run(x, [&](const Value& value) { return amax(value, dim); });
    Shape left = shape;
    left[axis] = 1;
    EXPECT_EQ(total.meta, Meta::tensor(DType::f32, left));
    EXPECT_EQ(largest.meta, total.meta);
    std::size_t line = 0;
    for_each_line(shape, axis, [&](std::int64_t at, std::int64_t step, std::int64_t count) {
      double wanted = 0, highest = -INFINITY;
      for (std::int64_t i = 0; i < count; ++i) {
        wanted += from[static_cast<std::size_t>(at + i * step)];
        highest = std::fmax(highest, from[static_cast<std::size_t>(at + i * step)]);
      }
      EXPECT_NEAR(elements_of(total)[line], wanted, 1e-6) << "dim " << dim << ", line " << line;
      EXPECT_EQ(elements_of(largest)[line], highest) << "dim " << dim << ", line " << line;
      ++line;
    });
  }
}

TEST_F(Softmax, RestsOnMaximaThatAreNoNegativeZero) {
  const std::vector<float> rows = {-0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -1.0f, -0.0f};
  const Tensor x = Tensor::from_bytes(Meta::tensor(DType::f32, {4, 2}), rows.data());
  for (const double largest : elements_of(run(x, [](const Value& value) { return amax(value); }))) {
    EXPECT_EQ(largest, 0);
    EXPECT_FALSE(std::signbit(largest));
  }
}

}  // namespace weft::softmax_test
