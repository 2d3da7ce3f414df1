// A kernel that is wrong only in the compiled run is named by the verification of a model's pieces.

#include <atomic>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/check/verify_pieces.h"
#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::verify_model_test {

class VerifyModel : public ::testing::Test {
 protected:
  // With `plant` every other call of the activation changes a bit: the call of the compiled run, which is first.
  std::vector<PieceVerdict> verdicts(bool plant, const Options& options = {}) {
    const auto context = make_context(options);
    Kernel kernel = *context->kernels.find("silu_and_mul", "cpu");
    kernel.provider = "moody";
    kernel.run = [this, plant, run = kernel.run](const KernelCall& call) {
      run(call);
      if (plant && calls_++ % 2 == 0) reinterpret_cast<std::uint8_t*>(call.results[0].data)[2] ^= 1;
    };
    context->kernels.add(std::move(kernel));
    context->priorities.set("silu_and_mul", {"moody"});
    Engine engine(context, Checkpoint::open(path_), make_model_registry());
    PieceVerification verification(*context);
    engine.runner().verify_pieces(verification);
    engine.generate(some_ids(9), {.max_tokens = 4, .ignore_end = true});
    return verification.verdicts();
  }

  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
  std::atomic<int> calls_{0};
};

TEST_F(VerifyModel, FindsEqualBitsInEveryPiece) {
  Options options;
  options.activation_precision = "exact";  // nothing quantizes, so no fusion takes silu_and_mul
  const std::vector<PieceVerdict> all = verdicts(false, options);
  ASSERT_GE(all.size(), 4u);
  std::int64_t calls = 0;
  for (const PieceVerdict& verdict : all) {
    EXPECT_TRUE(verdict.is_right()) << verdict.graph << "." << verdict.piece;
    calls += verdict.calls;
  }
  // Four steps of two layers, each with attention, the pieces before, between and after it, and the head.
  EXPECT_EQ(calls, 4 * (2 + 3 + 1));
}

TEST_F(VerifyModel, NamesThePieceOfAKernelThatChangesAValue) {
  Options options;
  options.activation_precision = "exact";
  int wrong = 0;
  for (const PieceVerdict& verdict : verdicts(true, options)) {
    if (verdict.is_right()) continue;
    ++wrong;
    EXPECT_EQ(verdict.graph, "forward");
    EXPECT_FALSE(verdict.is_splitting);
    EXPECT_EQ(verdict.differing_calls, verdict.calls);
    EXPECT_FALSE(verdict.layer.empty());
  }
  // The activation of the first layer is in the piece between the attentions, that of the last after both.
  EXPECT_EQ(wrong, 2);
}

TEST_F(VerifyModel, GivesTheSameTextWithPiecesOpByOp) {
  const std::vector<std::vector<float>> compiled = all_logits(*tiny_engine(path_), some_ids(6));
  EXPECT_EQ(all_logits(*tiny_engine(path_, {{"eager-piece", "2"}, {"eager-piece", "head.p0"}}), some_ids(6)), compiled);
  const std::string message = message_of([&] { tiny_engine(path_, {{"eager-piece", "p77"}}); });
  EXPECT_NE(message.find("[--eager-piece] \"p77\" names no piece; there are forward.p0"), std::string::npos) << message;
}

TEST_F(VerifyModel, IsRefusedWhereNothingIsCompiled) {
  const auto engine = tiny_engine(path_, {{"enforce-eager", "true"}});
  Options options;
  const auto context = make_context(options);
  PieceVerification verification(*context);
  const std::string message = message_of([&] { engine->runner().verify_pieces(verification); });
  EXPECT_NE(message.find("nothing compiled"), std::string::npos) << message;
}

}  // namespace weft::verify_model_test
