#pragma once

// Constraints of answers that have reasoning before them: the reasoning is free, and what follows its end marker is
// what the constraint allows.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sampling/token_constraint.h"
#include "io/tokenizer.h"

namespace weft {

// How the tokens of a vocabulary write the markers of a model's reasoning. Several threads may use it.
class ReasoningTokens {
 public:
  // The tokenizer must outlive this object. `end_tokens` end an answer; logits are of `vocabulary_size` tokens. Neither
  // marker is empty.
  ReasoningTokens(const Tokenizer& tokenizer, std::vector<int> end_tokens, std::int64_t vocabulary_size,
                  const std::string& begin, std::string end);

  // The token that is the first marker; nullopt if the vocabulary has none. Without it an answer has reasoning only if
  // its prompt ends with the marker.
  std::optional<int> begin_token() const { return begin_token_; }
  const std::vector<int>& end_tokens() const { return end_tokens_; }
  // How many bytes of the end marker are at the end of a text that has `matched` of them at its end, after this token.
  // All of them: the token completes the marker, and has nothing after it unless it is one of tokens_past_end().
  std::size_t matched_after(std::size_t matched, int token) const;
  std::size_t end_size() const { return end_.size(); }
  // The tokens that complete the marker and have more text after it. That text would be in the answer, and not checked.
  const std::vector<int>& tokens_past_end(std::size_t matched) const;

 private:
  std::string_view text_of(int token) const;
  std::size_t matched_after_byte(std::size_t matched, char byte) const {
    return matched_after_byte_[matched][static_cast<unsigned char>(byte)];
  }

  const Tokenizer& tokenizer_;
  std::vector<int> end_tokens_;
  std::int64_t vocabulary_size_;
  std::string end_;
  std::optional<int> begin_token_;
  std::vector<std::array<std::uint16_t, 256>> matched_after_byte_;  // by the number of matched bytes
  mutable std::once_flag has_past_end_;
  mutable std::vector<std::vector<int>> past_end_;  // by the number of matched bytes
};

// `begins_inside`: the prompt ends within the reasoning. Otherwise the answer may begin with the first marker or with
// what the constraint allows. An answer cannot end within its reasoning, unless it is cut.
std::shared_ptr<const TokenConstraint> constraint_after_reasoning(std::shared_ptr<const ReasoningTokens> tokens,
                                                                  std::shared_ptr<const TokenConstraint> constraint,
                                                                  bool begins_inside);

}  // namespace weft
