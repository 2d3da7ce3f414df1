#include "ops/xielu.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "tests/test_context.h"

namespace weft::xielu_test {

TEST(Xielu, IsTheFormulaOnBothSidesOfZero) {
  const auto context = test_context();
  Interpreter interpreter(*context);
  const std::vector<float> x = {-50, -3, -0.5f, -1e-3f, 0, 1e-3f, 0.5f, 3, 50};
  const float alpha_p = 0.25f, alpha_n = -1;
  const Values v = values_of(interpreter, {Tensor::from_bytes(Meta::tensor(DType::f32, {1, 9}), x.data()),
                                           Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &alpha_p),
                                           Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &alpha_n)});
  const std::vector<double> came = elements_of(xielu(v[0], v[1], v[2], 0.75, -1e-2).tensor());
  const double p = std::log1p(std::exp(alpha_p)), n = 0.75 + std::log1p(std::exp(alpha_n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    const double wanted = 0.75 * at + (at > 0 ? p * at * at : (std::expm1(std::min(at, double{-1e-2f})) - at) * n);
    EXPECT_NEAR(came[i], wanted, 1e-6 * std::max(std::abs(wanted), 1e-2)) << at;
  }
}

TEST(Xielu, GivesTheDtypeThatHoldsBothAndRefusesAlphasOfTwo) {
  const auto context = test_context();
  const auto result = [&](const Meta& x, const Meta& alpha_p, const Meta& alpha_n) -> std::string {
    const Op& op = context->ops.at("xielu");
    const std::vector<std::optional<Meta>> operands{x, alpha_p, alpha_n};
    try {
      return infer_results(op, context->ops, operands, complete_attributes(op.schema, {}))[0].text();
    } catch (const UserError& error) {
      return error.what();
    }
  };
  const auto one = [](DType dtype) { return Meta::tensor(dtype, {1}); };
  const auto x = [](DType dtype) { return Meta::tensor(dtype, {Dim::symbol("s0"), 8}); };
  EXPECT_EQ(result(x(DType::bf16), one(DType::bf16), one(DType::bf16)), "bf16[s0, 8]");
  EXPECT_EQ(result(x(DType::f16), one(DType::bf16), one(DType::bf16)), "f32[s0, 8]");
  EXPECT_EQ(result(x(DType::f32), one(DType::bf16), one(DType::bf16)), "f32[s0, 8]");
  EXPECT_EQ(result(x(DType::f64), one(DType::f32), one(DType::f32)), "f64[s0, 8]");
  EXPECT_EQ(result(x(DType::bf16), one(DType::bf16), one(DType::f32)),
            "[xielu] alpha_n must be bf16[1], but is f32[1]");
  EXPECT_EQ(result(x(DType::bf16), x(DType::bf16), one(DType::bf16)),
            "[xielu] alpha_p must be bf16[1], but is bf16[s0, 8]");
}

}  // namespace weft::xielu_test
