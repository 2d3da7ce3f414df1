#include "ops/softplus.h"

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/run/interpret.h"
#include "tests/test_context.h"

namespace weft::softplus_test {

TEST(Softplus, HoldsFromTheSmallestResultsToNumbersThatExpHasNoRoomFor) {
  const auto context = test_context();
  Interpreter interpreter(*context);
  const std::vector<float> x = {-INFINITY, -100, -20, -1, 0, 1, 20, 1000, 3e38f, INFINITY, NAN};
  const Tensor tensor = Tensor::from_bytes(Meta::tensor(DType::f32, {11}), x.data());
  const std::vector<double> came = elements_of(softplus(interpreter.value(tensor)).tensor());
  for (std::size_t i = 1; i < 7; ++i) {
    const auto wanted = static_cast<float>(std::log1p(std::exp(static_cast<double>(x[i]))));
    EXPECT_NEAR(came[i], wanted, 0x1p-23 * wanted) << x[i];
  }
  EXPECT_EQ(came[0], 0);
  for (std::size_t i = 7; i < 10; ++i) EXPECT_EQ(came[i], x[i]);
  EXPECT_TRUE(std::isnan(came[10]));
}

}  // namespace weft::softplus_test
