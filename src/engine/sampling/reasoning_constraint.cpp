#include "engine/sampling/reasoning_constraint.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace weft {
namespace {

// For each number of matched bytes and each next byte, the longest begin of the text at the end of what was read then.
std::vector<std::array<std::uint16_t, 256>> match_table(const std::string& text) {
  std::vector<std::array<std::uint16_t, 256>> table(text.size());
  for (std::size_t matched = 0; matched < text.size(); ++matched) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::string read = text.substr(0, matched) + static_cast<char>(byte);
      std::size_t longest = read.size();
      while (!text.starts_with(std::string_view(read).substr(read.size() - longest))) --longest;
      table[matched][byte] = static_cast<std::uint16_t>(longest);
    }
  }
  return table;
}

class ReasoningMask final : public TokenMask {
 public:
  ReasoningMask(std::shared_ptr<const ReasoningTokens> tokens, const TokenConstraint& constraint, bool begins_inside)
      : tokens_(std::move(tokens)), answer_(constraint.begin()), part_(begins_inside ? Part::reasoning : Part::start) {}

  void apply(std::span<float> logits) override {
    if (part_ == Part::answer) return answer_->apply(logits);
    if (part_ == Part::start) {
      const auto begin = static_cast<std::size_t>(*tokens_->begin_token());
      const float logit = logits[begin];
      answer_->apply(logits);
      logits[begin] = logit;
      return;
    }
    for (const int id : tokens_->end_tokens()) logits[static_cast<std::size_t>(id)] = -INFINITY;
    for (const int id : tokens_->tokens_past_end(matched_)) logits[static_cast<std::size_t>(id)] = -INFINITY;
  }

  void accept(int token) override {
    if (part_ == Part::reasoning) {
      matched_ = tokens_->matched_after(matched_, token);
      if (matched_ == tokens_->end_size()) part_ = Part::answer;
    } else if (part_ == Part::start && token == *tokens_->begin_token()) {
      part_ = Part::reasoning;
    } else {
      part_ = Part::answer;
      answer_->accept(token);
    }
  }

 private:
  enum class Part : std::uint8_t { start, reasoning, answer };

  std::shared_ptr<const ReasoningTokens> tokens_;
  std::unique_ptr<TokenMask> answer_;
  Part part_;
  std::size_t matched_ = 0;  // bytes of the end marker
};

class ReasoningConstraint final : public TokenConstraint {
 public:
  ReasoningConstraint(std::shared_ptr<const ReasoningTokens> tokens, std::shared_ptr<const TokenConstraint> constraint,
                      bool begins_inside)
      : tokens_(std::move(tokens)), constraint_(std::move(constraint)), begins_inside_(begins_inside) {}
  std::unique_ptr<TokenMask> begin() const override {
    return std::make_unique<ReasoningMask>(tokens_, *constraint_, begins_inside_);
  }

 private:
  std::shared_ptr<const ReasoningTokens> tokens_;
  std::shared_ptr<const TokenConstraint> constraint_;
  bool begins_inside_;
};

}  // namespace

ReasoningTokens::ReasoningTokens(const Tokenizer& tokenizer, std::vector<int> end_tokens, std::int64_t vocabulary_size,
                                 const std::string& begin, std::string end)
    : tokenizer_(tokenizer),
      end_tokens_(std::move(end_tokens)),
      vocabulary_size_(vocabulary_size),
      end_(std::move(end)),
      begin_token_(tokenizer.find(begin)),
      matched_after_byte_(match_table(end_)) {
  CHECK(!begin.empty() && !end_.empty(), "a marker is empty");
}

std::string_view ReasoningTokens::text_of(int token) const {
  return token < tokenizer_.token_count() ? tokenizer_.token_bytes(token) : std::string_view();
}

std::size_t ReasoningTokens::matched_after(std::size_t matched, int token) const {
  for (const char byte : text_of(token)) {
    if (matched == end_.size()) break;
    matched = matched_after_byte(matched, byte);
  }
  return matched;
}

const std::vector<int>& ReasoningTokens::tokens_past_end(std::size_t matched) const {
  std::call_once(has_past_end_, [this] {
    past_end_.resize(end_.size());
    for (int id = 0; id < vocabulary_size_; ++id) {
      const std::string_view text = text_of(id);
      const std::string_view before_last = text.substr(0, text.empty() ? 0 : text.size() - 1);
      if (before_last.find(end_.back()) == std::string_view::npos) continue;  // of nearly all tokens
      for (std::size_t start = 0; start < end_.size(); ++start) {
        std::size_t now = start;
        for (const char byte : before_last)
          if (now < end_.size()) now = matched_after_byte(now, byte);
        if (now == end_.size()) past_end_[start].push_back(id);
      }
    }
  });
  return past_end_[matched];
}

std::shared_ptr<const TokenConstraint> constraint_after_reasoning(std::shared_ptr<const ReasoningTokens> tokens,
                                                                  std::shared_ptr<const TokenConstraint> constraint,
                                                                  bool begins_inside) {
  CHECK(begins_inside || tokens->begin_token(), "the vocabulary has no token that begins the reasoning");
  return std::make_shared<ReasoningConstraint>(std::move(tokens), std::move(constraint), begins_inside);
}

}  // namespace weft
