#include "compiler/run/guard_evaluation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/context.h"
#include "ir/reading.h"
#include "ops/mul.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::guard_evaluation_test {

using Function = std::function<Value(const Value& x)>;

class GuardEvaluationTest : public ::testing::Test {
 protected:
  struct Traced {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>("forward", Stage::traced);
    std::vector<SizeBranch> branches;
  };
  Traced trace(const Function& function, const Dim& rows) const {
    Traced traced;
    Trace trace(context_->ops, *traced.graph);
    trace.finish({function(trace.input("x", Meta::tensor(DType::f32, {rows, 4})))});
    traced.branches = trace.branches();
    return traced;
  }
  GuardEvaluation evaluate(const Function& function, const Interval& range = {1, 64}) const {
    const Traced traced = trace(function, Dim::symbol("s0"));
    traced.graph->bounds["s0"] = range;
    return {traced.graph, traced.branches,
            [this, function](const Bindings& sizes) { return trace(function, sizes.at("s0")).graph; }};
  }

  const std::shared_ptr<Context> context_ = kernel_context();
};

TEST_F(GuardEvaluationTest, EverySizeOfAFunctionWithoutBranchesGivesTheSameGraph) {
  GuardEvaluation evaluation = evaluate([](const Value& x) { return silu(x); });
  EXPECT_EQ(evaluation.report().sizes, 4U) << "the ends and what lies next to them";
  for (std::int64_t size = 1; size <= 64; ++size) evaluation.check({{"s0", size}});
  EXPECT_EQ(evaluation.report().sizes, 64U);
  EXPECT_EQ(guard_report_text(evaluation.report()),
            "forward, s0 in [1, 64]: 0 branches on sizes, 0 of them not proved; the same graph for 64 sizes");
}

TEST_F(GuardEvaluationTest, ARangeOfOneSizeIsTracedOnce) {
  EXPECT_EQ(evaluate([](const Value& x) { return silu(x); }, {7, 7}).report().sizes, 1U);
}

TEST_F(GuardEvaluationTest, ABranchThatIsProvedForAllSizesIsListed) {
  const GuardEvaluation evaluation =
      evaluate([](const Value& x) { return guard(x, x.dim(0) + Dim(4) > x.dim(0)) ? silu(x) : sigmoid(x); });
  EXPECT_EQ(evaluation.report().branches, 1U);
  EXPECT_TRUE(evaluation.report().unproved.empty());
}

TEST_F(GuardEvaluationTest, ABranchThatIsDisprovedIsListedAsWhatHolds) {
  const Traced traced =
      trace([](const Value& x) { return guard(x, x.dim(0) < 0) ? silu(x) : sigmoid(x); }, Dim::symbol("s0"));
  ASSERT_EQ(traced.branches.size(), 1U);
  EXPECT_EQ(traced.branches[0].condition.text(), "0 <= s0");
  EXPECT_EQ(traced.graph->nodes().front()->name, "sigmoid");
}

TEST_F(GuardEvaluationTest, ABranchOnNumbersIsNone) {
  EXPECT_EQ(evaluate([](const Value& x) { return guard(x, x.dim(1) > 3) ? silu(x) : sigmoid(x); }).report().branches,
            0U);
}

TEST_F(GuardEvaluationTest, ABranchThatIsNotProvedForTheWholeRangeIsAnError) {
  const Traced traced = trace([](const Value& x) { return silu(x); }, Dim::symbol("s0"));
  traced.graph->bounds["s0"] = {1, 64};
  const auto construct = [&](const DimCondition& condition) {
    const Reading reading{"guard()", std::source_location::current()};
    GuardEvaluation(traced.graph, {{condition, reading}}, [&](const Bindings& sizes) {
      return trace([](const Value& x) { return silu(x); }, sizes.at("s0")).graph;
    });
  };
  construct(Dim::symbol("s0") <= 64);
  const std::string message = message_of<InternalError>([&] { construct(Dim::symbol("s0") <= 63); });
  EXPECT_NE(message.find("forward was traced for all sizes, but s0 <= 63 ("), std::string::npos) << message;
  EXPECT_NE(message.find("guard_evaluation_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find(") is not proved for them"), std::string::npos) << message;
}

TEST_F(GuardEvaluationTest, CodeThatTellsASizeApartWithoutAskingIsFoundAtThatSize) {
  GuardEvaluation evaluation = evaluate([](const Value& x) { return x.dim(0) == Dim(5) ? sigmoid(x) : silu(x); });
  evaluation.check({{"s0", 4}});
  const std::string message = message_of<InternalError>([&] { evaluation.check({{"s0", 5}}); });
  EXPECT_NE(message.find("forward is another graph for s0 = 5 than for all sizes: wanted `"), std::string::npos)
      << message;
  EXPECT_NE(message.find("silu(%x)`, but is `"), std::string::npos) << message;
  EXPECT_NE(message_of<InternalError>([&] { evaluation.check({{"s0", 5}}); }), "") << "found again when it comes again";
}

TEST_F(GuardEvaluationTest, CodeThatReadsAnotherWeightAtASizeIsFound) {
  const auto read = [&](const Dim& rows) {
    auto graph = std::make_shared<Graph>("forward", Stage::traced);
    Trace trace(context_->ops, *graph);
    const Value x = trace.input("x", Meta::tensor(DType::f32, {rows, 4}));
    trace.finish({mul(x, trace.param("w", Meta::tensor(DType::f32, {4}), rows == Dim(5) ? "other" : "usual"))});
    return graph;
  };
  const auto traced = read(Dim::symbol("s0"));
  traced->bounds["s0"] = {1, 64};
  GuardEvaluation evaluation(traced, {}, [&](const Bindings& sizes) { return read(sizes.at("s0")); });
  evaluation.check({{"s0", 4}});
  EXPECT_NE(message_of<InternalError>([&] { evaluation.check({{"s0", 5}}); }), "");
}

TEST_F(GuardEvaluationTest, ASizeOutOfItsRangeIsRefused) {
  GuardEvaluation evaluation = evaluate([](const Value& x) { return silu(x); });
  EXPECT_NE(message_of<UserError>([&] {
              evaluation.check({{"s0", 65}});
            }).find("s0 of forward in [1, 64], but is 65"),
            std::string::npos);
  EXPECT_NE(message_of<UserError>([&] { evaluation.check({}); }).find("but is not given"), std::string::npos);
}

}  // namespace weft::guard_evaluation_test
