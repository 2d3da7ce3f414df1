#include "ops/fatrelu_and_mul.h"

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/run/interpret.h"
#include "tests/test_context.h"

namespace weft::fatrelu_and_mul_test {

TEST(FatreluAndMul, ClosesTheGateAtTheThresholdAndLetsNanThrough) {
  const auto context = test_context();
  Interpreter interpreter(*context);
  const std::vector<float> x = {-1, 0.25f, 0.375f, INFINITY, NAN, -INFINITY,  // gates
                                2,  2,     2,      2,        2,   2};
  const Tensor tensor = Tensor::from_bytes(Meta::tensor(DType::f32, {1, 12}), x.data());
  const std::vector<double> came = elements_of(fatrelu_and_mul(interpreter.value(tensor), 0.25).tensor());
  EXPECT_EQ(std::vector<double>(came.begin(), came.begin() + 4), (std::vector<double>{0, 0, 0.75, INFINITY}));
  EXPECT_TRUE(std::isnan(came[4]));
  EXPECT_EQ(came[5], 0);
}

}  // namespace weft::fatrelu_and_mul_test
