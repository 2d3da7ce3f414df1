#pragma once

// What an answer may be, token by token: a grammar, or whatever else knows which tokens may follow.

#include <memory>
#include <span>

namespace weft {

// One answer while it is generated. One thread at a time.
class TokenMask {
 public:
  virtual ~TokenMask() = default;
  // Sets the logits of tokens that may not follow to minus infinity. The end tokens of the model may follow exactly
  // where the answer may end. At least one token is left: if there is none, it throws UserError, and the answer ends as
  // failed.
  virtual void apply(std::span<float> logits) = 0;
  // The token was drawn.
  virtual void accept(int token) = 0;
};

// Compiled once and shared by all answers that it is for; several threads may use it.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // A mask at the beginning of an answer.
  virtual std::unique_ptr<TokenMask> begin() const = 0;
};

}  // namespace weft
