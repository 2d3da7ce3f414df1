// Seeded faults of a Plan are found in their piece.

#include "compiler/check/verify_pieces.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/stitch.h"
#include "tests/small_layer.h"

namespace weft::verify_pieces_test {

class VerifyPieces : public ::testing::Test {
 protected:
  // Runs a Plan three times with different rows.
  std::vector<PieceVerdict> verdicts(std::shared_ptr<const Plan> plan) {
    Replay replay(std::move(plan), *context_->threads);
    PieceVerification verification(*context_);
    verification.on_call = [this](const VerifiedCall& call) { differs_ += call.differs ? 1 : 0; };
    verification.watch(replay, compiled_.records[0]);
    for (const int rows : {1, 8, 3}) {
      const std::vector<Tensor> inputs = layer_inputs(*traced_, rows).copies();
      for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, inputs[i]);
      replay.run();
    }
    return verification.verdicts();
  }

  // The pieces that are not right.
  static std::set<std::string> wrong_of(const std::vector<PieceVerdict>& verdicts) {
    std::set<std::string> wrong;
    for (const PieceVerdict& verdict : verdicts)
      if (!verdict.is_right()) wrong.insert(verdict.piece);
    return wrong;
  }

  std::shared_ptr<Context> context_ = test_context();
  std::shared_ptr<Graph> traced_ = small_layer(*context_);
  CompiledRanges compiled_ = compile_ranges(*traced_, *context_, {{1, 8}}, {});
  int differs_ = 0;
};

// The kernel with one changed bit in the exponent of the first element of one result; later ops might round away a
// smaller change.
Kernel wrong_kernel(const Kernel& right, std::size_t result) {
  Kernel wrong = right;
  wrong.run = [run = right.run, result](const KernelCall& call) {
    run(call);
    reinterpret_cast<std::uint8_t*>(call.results[result].data)[3] ^= 0x40;
  };
  return wrong;
}

TEST_F(VerifyPieces, FindNothingWhereNothingIsWrong) {
  const std::vector<PieceVerdict> all = verdicts(compiled_.plans[0]);
  ASSERT_EQ(all.size(), 3u);
  for (const PieceVerdict& verdict : all) {
    EXPECT_TRUE(verdict.is_right()) << verdict.piece;
    EXPECT_EQ(verdict.calls, 3);
    EXPECT_EQ(verdict.graph, "layer");
    EXPECT_EQ(verdict.largest, 0);
    EXPECT_EQ(verdict.value, "");
    EXPECT_EQ(verdict.is_splitting, verdict.piece == "p1");
  }
  EXPECT_EQ(differs_, 0);
}

TEST_F(VerifyPieces, NameThePieceOfEachWrongKernel) {
  int found = 0;
  const Plan& plan = *compiled_.plans[0];
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t result = 0; result < plan.steps[i].results.size(); ++result) {
      SCOPED_TRACE(plan.steps[i].op + " " + std::to_string(result));
      const Kernel wrong = wrong_kernel(*plan.steps[i].kernel, result);
      auto seeded = std::make_shared<Plan>(plan);
      seeded->steps[i].kernel = &wrong;
      differs_ = 0;
      const std::vector<PieceVerdict> all = verdicts(seeded);
      EXPECT_EQ(wrong_of(all), std::set<std::string>{plan.steps[i].piece});
      EXPECT_GT(differs_, 0);
      for (const PieceVerdict& verdict : all) {
        if (verdict.is_right()) continue;
        EXPECT_GE(verdict.differing_calls, 1);
        EXPECT_EQ(verdict.spoiled_calls, 0);
        EXPECT_GT(verdict.largest_ulps, 0);
        EXPECT_NE(verdict.value, "");
        EXPECT_GE(verdict.run, 1);
      }
      ++found;
    }
  EXPECT_GE(found, 10);
  std::printf("count: %d seeded kernels found\n", found);
}

// The attention overwrites the residual, which bypasses it from p0 to p2: each piece alone is correct.
TEST_F(VerifyPieces, FindAValueThatIsWrittenOverBetweenPieces) {
  const Graph& split = *compiled_.records[0].split;
  const auto calls = stitched_calls(split, generate_pieces(split, *context_, {1, 8}), *context_);
  ASSERT_EQ(calls.size(), 3u);
  std::size_t residual = 0;  // among the inputs of p2
  while (calls[2].node->operands[residual]->producer != calls[0].node) ++residual;
  Replay* replay = nullptr;
  auto seeded = std::make_shared<Plan>(*compiled_.plans[0]);
  const Kernel* right = seeded->steps[calls[1].first_step].kernel;
  Kernel wrong = *right;
  wrong.run = [&](const KernelCall& call) {
    right->run(call);
    replay->tensor(calls[2].operands[residual]).data()[5] ^= std::byte{1};
  };
  seeded->steps[calls[1].first_step].kernel = &wrong;
  Replay made(seeded, *context_->threads);
  replay = &made;
  PieceVerification verification(*context_);
  verification.watch(made, compiled_.records[0]);
  const std::vector<Tensor> inputs = layer_inputs(*traced_, 4).copies();
  for (std::size_t i = 0; i < inputs.size(); ++i) made.bind(i, inputs[i]);
  made.run();
  for (const PieceVerdict& verdict : verification.verdicts()) {
    EXPECT_EQ(verdict.differing_calls, 0) << verdict.piece;
    EXPECT_EQ(verdict.spoiled_calls, verdict.piece == "p2" ? 1 : 0) << verdict.piece;
    EXPECT_EQ(verdict.value, verdict.piece == "p2" ? calls[2].node->operands[residual]->name : "");
  }
}

TEST_F(VerifyPieces, RefuseAPlanThatIsNotTheRecords) {
  auto shorter = std::make_shared<Plan>(*compiled_.plans[0]);
  shorter->steps.pop_back();
  Replay replay(shorter, *context_->threads);
  PieceVerification verification(*context_);
  EXPECT_THROW(verification.watch(replay, compiled_.records[0]), InternalError);
}

}  // namespace weft::verify_pieces_test
