#include "ops/where_at_most.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::where_at_most_test {

class WhereAtMost : public testing::Test {
 protected:
  std::vector<double> chosen(const std::vector<float>& x, double bound) {
    const auto columns = static_cast<std::int64_t>(x.size());
    const float then = 1, otherwise = -1;
    const Values v = values_of(interpreter_, {Tensor::from_bytes(Meta::tensor(DType::f32, {1, columns}), x.data()),
                                              Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &then),
                                              Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &otherwise)});
    return elements_of(where_at_most(v[0], v[1], v[2], bound).tensor());
  }

  std::shared_ptr<Context> context_ = test_context();
  Interpreter interpreter_{*context_};
};

TEST_F(WhereAtMost, TakesTheFirstUpToTheBoundAndTheSecondAboveItAndForNan) {
  EXPECT_EQ(chosen({-INFINITY, -1, -0.0f, 0, 0x1p-149f, 1, INFINITY, NAN}, 0),
            (std::vector<double>{1, 1, 1, 1, -1, -1, -1, -1}));
}

TEST_F(WhereAtMost, ComparesWithTheBoundAsF32) {
  // 0.1f is above 0.1.
  EXPECT_EQ(chosen({0.1f, std::nextafter(0.1f, 1.0f)}, 0.1), (std::vector<double>{1, -1}));
}

TEST_F(WhereAtMost, RefusesWhatDoesNotSpreadOverXOrIsOfTwoDtypes) {
  const auto message = [&](const Meta& x, const Meta& then, const Meta& otherwise) -> std::string {
    return message_of([&] {
      const std::vector<std::optional<Meta>> operands{x, then, otherwise};
      infer_results(context_->ops.at("where_at_most"), context_->ops, operands, {{"bound", 0.0}});
    });
  };
  const Meta x = Meta::tensor(DType::bf16, {2, 3}), one = Meta::tensor(DType::f32, {1});
  EXPECT_EQ(message(x, one, Meta::tensor(DType::f32, {2, 1})), "");
  EXPECT_EQ(message(x, Meta::tensor(DType::f32, {2}), one),
            "[where_at_most] then must match x: bf16[2, 3] or have 1 in its place, but is f32[2]");
  EXPECT_EQ(message(x, one, Meta::tensor(DType::f32, {1, 2, 3})),
            "[where_at_most] otherwise must match x: bf16[2, 3] or have 1 in its place, but is f32[1, 2, 3]");
  EXPECT_EQ(message(x, one, x), "[where_at_most] otherwise must be of dtype f32 as then: f32[1], but is bf16[2, 3]");
  EXPECT_EQ(message(Meta::tensor(DType::i8, {2, 3}), one, one),
            "[where_at_most] x must be a floating tensor, but is i8[2, 3]");
}

}  // namespace weft::where_at_most_test
