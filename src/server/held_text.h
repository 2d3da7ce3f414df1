#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sampling/sampler.h"
#include "io/tokenizer.h"

namespace weft {

// The text of a stream's tokens that the engine holds back because it may begin a stop text, or is a part of a
// character. The engine gives it out where it ends an answer itself, but not where the server ends it.
class HeldText {
 public:
  void take(const RequestEvent& event) {
    tokens_.push_back(event.token);
    given_ += event.text.size();
  }
  // After the prompt, and with the parameters of the sequence.
  std::string rest(const Tokenizer* tokenizer, std::span<const int> prompt, const SamplingParameters& parameters) const;

 private:
  std::vector<int> tokens_;
  std::size_t given_ = 0;  // bytes of their text
};

}  // namespace weft
