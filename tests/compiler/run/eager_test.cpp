// Eager calls: the state that is kept from one call to the next, and state that must not be kept.

#include "compiler/run/eager.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "ops/add.h"
#include "ops/mul_scalar.h"
#include "ops/rms_norm.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::eager_test {

class EagerTest : public testing::Test {
 protected:
  EagerTest() : context_(test_context()), asked_(std::make_shared<int>(0)) {
    Kernel counting = *context_->kernels.find("rms_norm", "cpu");
    counting.provider = "counting";
    counting.supports = [asked = asked_](const KernelRequest&) {
      ++*asked;
      return Verdict::yes();
    };
    context_->kernels.add(std::move(counting));
    context_->priorities.set("rms_norm", {"counting"});
  }

  static Tensor row(std::int64_t rows, float value, DType dtype = DType::f32) {
    return make_sample_tensor({"x", {rows, 8}, dtype}, dtype, static_cast<std::uint64_t>(value));
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<int> asked_;
};

TEST_F(EagerTest, ChoosesOnceForCallsOfEqualTypesAndAttributes) {
  EagerEvaluator eager(*context_, {1, 8});
  const auto norm = [&](std::int64_t rows, double epsilon, DType dtype = DType::f32) {
    return rms_norm(eager.value(row(rows, 1, dtype)), Value(), Scalar(epsilon));
  };
  for (int i = 0; i < 3; ++i) norm(2, 1e-5);
  EXPECT_EQ(*asked_, 1);
  EXPECT_EQ(norm(3, 1e-5).meta().text(), "f32[3, 8]");
  norm(3, 1e-6);
  EXPECT_EQ(norm(3, 1e-6, DType::bf16).meta().text(), "bf16[3, 8]");
  EXPECT_EQ(*asked_, 4);
  norm(2, 1e-5);
  EXPECT_EQ(*asked_, 4);
}

TEST_F(EagerTest, OpensNoLibraryForAChoiceAfterReadyWhereThatIsForbidden) {
  Kernel opening = *context_->kernels.find("rms_norm", "cpu");
  opening.provider = "opening";
  opening.supports = [](const KernelRequest&) {
    std::string problem;
    return SharedLibrary::open("libm.so.6", problem) ? Verdict::yes() : Verdict::no(problem);
  };
  context_->kernels.add(std::move(opening));
  context_->priorities.set("rms_norm", {"opening"});
  EagerEvaluator eager(*context_, {1, 8});
  const auto norm = [&](std::int64_t rows) { rms_norm(eager.value(row(rows, 1)), Value(), Scalar(1e-5)); };
  norm(1);
  EXPECT_EQ(context_->first_time_work->counts(FirstTime::load).before_ready, 1);
  context_->first_time_work->set_ready(true);
  norm(1);
  const std::string message = message_of<InternalError>([&] { norm(2); });
  EXPECT_NE(message.find("libm.so.6 wants to load"), std::string::npos) << message;
}

TEST_F(EagerTest, TellsAttributesApartByTheirBits) {
  EagerEvaluator eager(*context_, {1, 8});
  const Value x = eager.value(row(1, 1));
  const double plus = elements_of(mul_scalar(x, 0.0).tensor())[0], minus = elements_of(mul_scalar(x, -0.0).tensor())[0];
  EXPECT_NE(std::signbit(plus), std::signbit(minus));
}

TEST_F(EagerTest, ACallThatIsRefusedIsRefusedAgain) {
  EagerEvaluator eager(*context_, {1, 8});
  const Value x = eager.value(row(2, 1)), y = eager.value(row(3, 1));
  for (int i = 0; i < 2; ++i) EXPECT_THROW(add(x, y), UserError);
}

TEST_F(EagerTest, ForgetsWhenSizesNeverRepeat) {
  EagerEvaluator eager(*context_, {1, 8});
  for (std::int64_t columns = 1; columns <= 9000; ++columns) {
    const Value x = eager.value(Tensor::empty(Meta::tensor(DType::f32, {1, columns})));
    ASSERT_EQ(add(x, x).dim(1), Dim(columns));
  }
}

TEST_F(EagerTest, ResultsKeepTheirMemoryWhileTheyLiveAndOutliveTheEvaluator) {
  Value kept;
  {
    EagerEvaluator eager(*context_, {1, 8});
    kept = add(eager.value(row(2, 1)), eager.value(row(2, 2)));
    const std::vector<double> before = elements_of(kept.tensor());
    for (int i = 0; i < 100; ++i) {
      const Value other = add(eager.value(row(2, 3)), eager.value(row(2, 4)));
      ASSERT_NE(other.tensor().data(), kept.tensor().data());
    }
    EXPECT_EQ(elements_of(kept.tensor()), before);
  }
  EXPECT_EQ(elements_of(kept.tensor()).size(), 16u);
}

}  // namespace weft::eager_test
