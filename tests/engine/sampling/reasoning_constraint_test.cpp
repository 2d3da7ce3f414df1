#include "engine/sampling/reasoning_constraint.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "engine/sampling/grammar_constraint.h"
#include "grammar/ebnf.h"
#include "tests/engine/tiny_model.h"

namespace weft::reasoning_constraint_test {

// Ids of the tokens that are added to the 256 bytes and the end token.
enum Added : int { kEnd = 256, kBegin, kFinish, kPast, kMiddle, kWide };

class ReasoningConstraints : public testing::Test {
 protected:
  // What may be drawn after these tokens.
  std::set<int> allowed_after(const std::vector<int>& tokens, bool begins_inside) {
    const auto mask = constraint_after_reasoning(tokens_, answer_, begins_inside)->begin();
    std::vector<float> logits(size_);
    for (const int token : tokens) {
      logits.assign(size_, 0.5F);
      mask->apply(logits);
      EXPECT_EQ(logits[static_cast<std::size_t>(token)], 0.5F) << token;
      mask->accept(token);
    }
    logits.assign(size_, 0.5F);
    mask->apply(logits);
    std::set<int> ids;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > -INFINITY) ids.insert(static_cast<int>(i));
    return ids;
  }
  // Of reasoning: all tokens but these.
  std::set<int> all_but(const std::set<int>& forbidden) const {
    std::set<int> ids;
    for (int id = 0; id < static_cast<int>(size_); ++id)
      if (!forbidden.contains(id)) ids.insert(id);
    return ids;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_ =
      tiny_engine(write_tiny_model(folder_, 1, {"<think>", "</think>", "x</think>y", "ink>", "k>z"}));
  const std::size_t size_ = static_cast<std::size_t>(engine_->runner().vocabulary_size());
  ConstraintCompiler compiler_{engine_->tokenizer(), engine_->end_tokens(), size_};
  std::shared_ptr<const TokenConstraint> answer_ =
      compiler_.compile("", [] { return grammar::read_ebnf("root ::= \"ab\""); });
  std::shared_ptr<const ReasoningTokens> tokens_ = std::make_shared<const ReasoningTokens>(
      engine_->tokenizer(), engine_->end_tokens(), static_cast<std::int64_t>(size_), "<think>", "</think>");
};

TEST_F(ReasoningConstraints, BeginWithTheReasoningOrTheAnswer) {
  EXPECT_EQ(allowed_after({}, false), (std::set<int>{'a', kBegin}));
  EXPECT_EQ(allowed_after({'a'}, false), (std::set<int>{'b'})) << "the answer has begun without reasoning";
  EXPECT_EQ(allowed_after({kBegin}, false), allowed_after({}, true));
}

TEST_F(ReasoningConstraints, LeaveTheReasoningFreeUntilItsMarker) {
  EXPECT_EQ(allowed_after({}, true), all_but({kEnd, kPast})) << "no end, and no marker with text after it";
  EXPECT_EQ(allowed_after({'{', 'z', kBegin}, true), all_but({kEnd, kPast}));
  EXPECT_EQ(allowed_after({kFinish}, true), (std::set<int>{'a'}));
  EXPECT_EQ(allowed_after({'z', kFinish, 'a'}, true), (std::set<int>{'b'}));
  EXPECT_EQ(allowed_after({'z', kFinish, 'a', 'b'}, true), (std::set<int>{kEnd}));
}

TEST_F(ReasoningConstraints, FindAMarkerOfSeveralTokens) {
  const std::vector<int> bytes = {'<', '<', '/', 't', 'h'};
  EXPECT_EQ(allowed_after(bytes, true), all_but({kEnd, kPast}));
  EXPECT_EQ(allowed_after({'<', '<', '/', 't', 'h', kMiddle}, true), (std::set<int>{'a'}));
  EXPECT_EQ(allowed_after({'<', '/', 't', 'h', 'i', 'n'}, true), all_but({kEnd, kPast, kWide}));
  EXPECT_EQ(allowed_after({'<', '/', 't', 'h', 'i', 'n', 'k', '>'}, true), (std::set<int>{'a'}));
  EXPECT_EQ(allowed_after({'<', '/', 't', '<', '/', 't', 'h', kMiddle, 'a'}, true), (std::set<int>{'b'}));
}

TEST_F(ReasoningConstraints, NeedNoTokenThatBegins) {
  const ReasoningTokens without(engine_->tokenizer(), engine_->end_tokens(), static_cast<std::int64_t>(size_),
                                "[THINK]", "[/THINK]");
  EXPECT_EQ(without.begin_token(), std::nullopt);
  EXPECT_EQ(tokens_->begin_token(), kBegin);
}

}  // namespace weft::reasoning_constraint_test
