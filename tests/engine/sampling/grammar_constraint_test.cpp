#include "engine/sampling/grammar_constraint.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "grammar/budget.h"
#include "grammar/ebnf.h"
#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::grammar_constraint_test {

class GrammarConstraints : public testing::Test {
 protected:
  std::shared_ptr<const TokenConstraint> compile(const std::string& text) {
    return compiler_.compile(text, [&] { return grammar::read_ebnf(text); });
  }

  TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_ = tiny_engine(write_tiny_model(folder_));
  const std::size_t size_ = static_cast<std::size_t>(engine_->runner().vocabulary_size());
  const std::vector<int> ends_ = engine_->end_tokens();
  ConstraintCompiler compiler_{engine_->tokenizer(), ends_, size_};
};

// The ids whose logits are left.
std::set<int> ids_left(const std::vector<float>& logits) {
  std::set<int> ids;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY) ids.insert(static_cast<int>(i));
  return ids;
}

TEST_F(GrammarConstraints, LeaveTheTokensThatMayFollowAndTheEndWhereItMayEnd) {
  const auto mask = compile("root ::= \"ab\" | \"a\"")->begin();
  std::vector<float> logits(size_, 0.5F);
  mask->apply(logits);
  EXPECT_EQ(ids_left(logits), (std::set<int>{'a'}));
  mask->accept('a');
  std::set<int> wanted(ends_.begin(), ends_.end());
  wanted.insert('b');
  logits.assign(size_, 0.5F);
  mask->apply(logits);
  EXPECT_EQ(ids_left(logits), wanted);
  for (const int id : wanted) EXPECT_EQ(logits[static_cast<std::size_t>(id)], 0.5F);
  mask->accept('b');
  logits.assign(size_, 0.5F);
  mask->apply(logits);
  EXPECT_EQ(ids_left(logits), std::set<int>(ends_.begin(), ends_.end()));
}

TEST_F(GrammarConstraints, EndWhereNothingElseMayFollowAndSayWhereNothingIsLeft) {
  const auto mask = compile("root ::= \"a\"")->begin();
  std::vector<float> logits(size_, -INFINITY);
  EXPECT_NE(message_of([&] { mask->apply(logits); }).find("no token may follow"), std::string::npos);
  mask->accept('a');
  mask->apply(logits);  // that of the end is minus infinity, too
  EXPECT_EQ(ids_left(logits), (std::set<int>{ends_[0]}));
}

TEST_F(GrammarConstraints, MakeAnswersThatMatch) {
  const std::set<std::string> choices = {"yes", "no", "not at all"};
  SamplingParameters parameters{.max_tokens = 50};
  parameters.constraint = compile("root ::= \"yes\" | \"no\" | \"not at all\"");
  std::set<std::string> drawn;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    parameters.temperature = seed == 0 ? 0 : 1.5;
    parameters.seed = seed;
    const Engine::Generation generation = engine_->generate(some_ids(5), parameters);
    EXPECT_EQ(generation.finished, FinishReason::stop);
    EXPECT_TRUE(choices.contains(generation.text)) << generation.text;
    drawn.insert(generation.text);
  }
  EXPECT_GT(drawn.size(), 1U);
  parameters.max_tokens = 1;
  const Engine::Generation cut = engine_->generate(some_ids(5), parameters);
  EXPECT_EQ(cut.finished, FinishReason::length);
  EXPECT_EQ(cut.tokens.size(), 1U);
}

TEST_F(GrammarConstraints, AreOfOneRequestAlone) {
  SamplingParameters free{.temperature = 1, .seed = 3, .max_tokens = 12, .ignore_end = true}, bound = free;
  bound.constraint = compile("root ::= [a-f]+");
  const std::vector<int> alone = engine_->generate(some_ids(6), free).tokens;
  const std::vector<int> alone_bound = engine_->generate(some_ids(6), bound).tokens;
  const int first = engine_->add(some_ids(6), free), second = engine_->add(some_ids(6), bound);
  engine_->add(some_ids(6), bound);
  std::vector<int> of_first, of_second;
  while (!engine_->is_idle())
    for (const RequestEvent& event : engine_->step()) {
      if (event.request == first) of_first.push_back(event.token);
      if (event.request == second) of_second.push_back(event.token);
    }
  EXPECT_EQ(of_first, alone);
  EXPECT_EQ(of_second, alone_bound);
}

TEST_F(GrammarConstraints, FailTheirOwnRequestAlone) {
  // The dummy allows the first token and nothing after it.
  struct OneToken final : TokenConstraint {
    struct Mask final : TokenMask {
      bool has_token = false;
      void apply(std::span<float>) override { USER_CHECK(!has_token, "[dummy] no token may follow"); }
      void accept(int) override { has_token = true; }
    };
    std::unique_ptr<TokenMask> begin() const override { return std::make_unique<Mask>(); }
  };
  SamplingParameters bound{.max_tokens = 5, .ignore_end = true}, free = bound;
  bound.constraint = std::make_shared<OneToken>();
  const int failing = engine_->add(some_ids(4), bound), other = engine_->add(some_ids(4), free);
  std::string error;
  std::size_t tokens = 0;
  while (!engine_->is_idle())
    for (const RequestEvent& event : engine_->step()) {
      if (event.request == failing && event.finished == FinishReason::failed) error = event.error;
      if (event.request == other) ++tokens;
    }
  EXPECT_NE(error.find("[dummy]"), std::string::npos);
  EXPECT_EQ(tokens, 5U);
}

TEST_F(GrammarConstraints, AreCompiledOnceEvenIfTheyFail) {
  int count = 0;
  const auto good = [&] {
    ++count;
    return grammar::read_ebnf("root ::= \"a\"");
  };
  EXPECT_EQ(compiler_.compile("good", good), compiler_.compile("good", good));
  EXPECT_EQ(count, 1);
  const auto bad = [&]() -> grammar::Grammar {
    ++count;
    fail_user("[grammar] is bad");
  };
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(message_of([&] { compiler_.compile("bad", bad); }).find("is bad"), std::string::npos);
  EXPECT_EQ(count, 2);
  const auto slow = [&]() -> grammar::Grammar {
    ++count;
    throw grammar::OutOfTime("[grammar] takes too long");
  };
  for (int i = 0; i < 2; ++i) EXPECT_THROW(compiler_.compile("slow", slow), UserError);
  EXPECT_EQ(count, 4) << "a busy machine may be less busy later";
}

}  // namespace weft::grammar_constraint_test
