#pragma once

// Finds the tool calls in the text of an answer. Each dialect is a state machine over characters, so what it reports
// does not depend on the pieces in which the text comes, and costs the same for each character.

#include <string>
#include <string_view>

#include "server/answer_events.h"

namespace weft {

class ToolParser {
 public:
  virtual ~ToolParser() = default;

  void push(std::string_view text, AnswerEvents& events) {
    for (const char c : text) take(c, events);
  }
  // The answer is over. A call that is not whole is reported as broken.
  virtual void finish(AnswerEvents& events) = 0;

 protected:
  virtual void take(char c, AnswerEvents& events) = 0;
};

}  // namespace weft
