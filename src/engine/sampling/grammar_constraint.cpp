#include "engine/sampling/grammar_constraint.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "grammar/budget.h"
#include "grammar/compiled_grammar.h"
#include "grammar/token_masks.h"

namespace weft {

using grammar::StateId;

namespace {

constexpr std::size_t kMostGrammars = 64;
constexpr std::size_t kMostMaskBytes = std::size_t{64} << 20;
// Of the states of one grammar. Beyond it only those of running answers are kept.
constexpr std::size_t kMostStateBytes = std::size_t{16} << 20;

// Tokens that a grammar may allow: not the control tokens, nor those that end an answer.
std::vector<std::string_view> texts_of(const Tokenizer& tokenizer, const std::vector<int>& ends, std::size_t size) {
  std::vector<std::string_view> texts(size);
  const int known = std::min(tokenizer.token_count(), static_cast<int>(size));
  for (int id = 0; id < known; ++id) {
    if (tokenizer.is_special(id) || std::find(ends.begin(), ends.end(), id) != ends.end()) continue;
    texts[static_cast<std::size_t>(id)] = tokenizer.token_bytes(id);
  }
  return texts;
}

// Minus infinity for the tokens that are not in the set.
void mask_logits(const grammar::TokenSet& allowed, std::span<float> logits) {
  for (std::size_t word = 0; word < allowed.size(); ++word) {
    const std::span<float> part = logits.subspan(word * 64, std::min<std::size_t>(64, logits.size() - word * 64));
    std::uint64_t masked = ~allowed[word];
    if (masked == ~std::uint64_t{0}) {
      std::fill(part.begin(), part.end(), -INFINITY);
      continue;
    }
    for (; masked != 0; masked &= masked - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(masked));
      if (i < part.size()) part[i] = -INFINITY;
    }
  }
}

}  // namespace

// The same for all grammars.
struct GrammarVocabulary {
  grammar::TokenTrie trie;
  std::vector<int> ends;
  std::vector<std::string_view> texts;
  grammar::MaskCache masks{kMostMaskBytes};
};

namespace {

// A compiled grammar with its states, which all answers share.
struct SharedGrammar {
  SharedGrammar(const grammar::Grammar& source, std::shared_ptr<GrammarVocabulary> of)
      : vocabulary(std::move(of)), tables(source), states(tables), masks(states, vocabulary->trie, vocabulary->masks) {
    USER_CHECK(states.start() != grammar::kDead, "[grammar] the first character is within more than {} rules",
               grammar::kDeepestStack);
  }

  // Drops states if there are many. Its lock is held.
  void limit_states() {
    if (states.size() <= kMostStateBytes) return;
    states.keep(live);
    masks.forget();
  }

  std::shared_ptr<GrammarVocabulary> vocabulary;
  grammar::CompiledGrammar tables;
  std::mutex mutex;  // of what follows
  grammar::ParserStates states;
  grammar::TokenMasks masks;
  std::vector<StateId*> live;  // the states of running answers
};

class GrammarMask final : public TokenMask {
 public:
  explicit GrammarMask(std::shared_ptr<SharedGrammar> shared) : shared_(std::move(shared)) {
    const std::lock_guard lock(shared_->mutex);
    state_ = shared_->states.start();
    shared_->live.push_back(&state_);
  }
  ~GrammarMask() override {
    const std::lock_guard lock(shared_->mutex);
    std::erase(shared_->live, &state_);
  }
  GrammarMask(const GrammarMask&) = delete;
  GrammarMask& operator=(const GrammarMask&) = delete;

  void apply(std::span<float> logits) override {
    std::shared_ptr<const grammar::MaskCache::Entry> allowed;
    bool may_end = false;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->limit_states();
      allowed = shared_->masks.mask(state_);
      may_end = shared_->states.may_end(state_);
    }
    const std::vector<int>& ends = shared_->vocabulary->ends;
    ends_.clear();
    for (const int end : ends) ends_.push_back(logits[static_cast<std::size_t>(end)]);
    mask_logits(allowed->tokens, logits);
    if (may_end)
      for (std::size_t i = 0; i < ends.size(); ++i) logits[static_cast<std::size_t>(ends[i])] = ends_[i];
    if (std::any_of(logits.begin(), logits.end(), [](float logit) { return logit > -INFINITY; })) return;
    // Where the answer is complete it ends, even if the logits of its ends are minus infinity.
    USER_CHECK(may_end,
               "[grammar] no token may follow: what the grammar allows here has a logit of minus infinity, or no token "
               "of the vocabulary begins with it");
    logits[static_cast<std::size_t>(ends[0])] = 0;
  }

  void accept(int token) override {
    const std::vector<int>& ends = shared_->vocabulary->ends;
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) return;
    const std::lock_guard lock(shared_->mutex);
    try {
      for (const char byte : shared_->vocabulary->texts[static_cast<std::size_t>(token)])
        state_ = shared_->states.step(state_, static_cast<std::uint8_t>(byte));
    } catch (const UserError&) {
      state_ = grammar::kDead;  // apply() reports it
    }
  }

 private:
  std::shared_ptr<SharedGrammar> shared_;
  StateId state_ = grammar::kDead;
  std::vector<float> ends_;
};

class GrammarConstraint final : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<SharedGrammar> shared) : shared_(std::move(shared)) {}
  std::unique_ptr<TokenMask> begin() const override { return std::make_unique<GrammarMask>(shared_); }

 private:
  std::shared_ptr<SharedGrammar> shared_;
};

}  // namespace

ConstraintCompiler::ConstraintCompiler(const Tokenizer& tokenizer, std::vector<int> end_tokens,
                                       std::size_t vocabulary_size)
    : tokenizer_(tokenizer), end_tokens_(std::move(end_tokens)), vocabulary_size_(vocabulary_size) {}

ConstraintCompiler::~ConstraintCompiler() = default;

std::shared_ptr<GrammarVocabulary> ConstraintCompiler::vocabulary() const {
  std::call_once(is_read_, [this] {
    std::vector<std::string_view> texts = texts_of(tokenizer_, end_tokens_, vocabulary_size_);
    grammar::TokenTrie trie(texts);
    vocabulary_.reset(new GrammarVocabulary{.trie = std::move(trie), .ends = end_tokens_, .texts = std::move(texts)});
  });
  return vocabulary_;
}

ConstraintCompiler::Compiled ConstraintCompiler::compile_now(
    const std::function<grammar::Grammar()>& make_grammar) const {
  try {
    USER_CHECK(!end_tokens_.empty(), "[grammar] the model has no token that ends an answer");
    return {std::make_shared<GrammarConstraint>(std::make_shared<SharedGrammar>(make_grammar(), vocabulary()))};
  } catch (const grammar::OutOfTime&) {
    throw;  // not kept
  } catch (const UserError& error) {
    return {nullptr, error.what()};
  }
}

std::shared_ptr<const TokenConstraint> ConstraintCompiler::compile(
    const std::string& key, const std::function<grammar::Grammar()>& make_grammar) const {
  const auto result = [](const Compiled& compiled) {
    if (compiled.constraint == nullptr) throw UserError(compiled.error);
    return compiled.constraint;
  };
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = index_.find(key); known != index_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return result(known->second->second);
    }
  }
  Compiled compiled = compile_now(make_grammar);
  const std::lock_guard lock(mutex_);
  if (const auto known = index_.find(key); known != index_.end()) return result(known->second->second);
  entries_.emplace_front(key, std::move(compiled));
  index_.emplace(key, entries_.begin());
  if (entries_.size() > kMostGrammars) {
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return result(entries_.front().second);
}

}  // namespace weft
