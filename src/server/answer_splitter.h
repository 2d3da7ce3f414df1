#pragma once

// Splits the text of a chat's answer into reasoning, content and tool calls.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/reasoning.h"
#include "server/tool_calls/tool_parser.h"

namespace weft {

class AnswerSplitter {
 public:
  // How many calls an answer has: one drops those after the first; `must` says that a call is all there is, so that one
  // that is cut stays a call, as far as it came.
  struct Calls {
    bool one = false, must = false;
  };

  // Either may be missing: there is no such part then.
  AnswerSplitter(std::optional<ReasoningParser> reasoning, std::unique_ptr<ToolParser> tools, Calls calls);

  AnswerEvents push(std::string_view text);
  // The answer is over: the events of what was held back.
  AnswerEvents finish();

 private:
  void take_answer(std::string_view text, AnswerEvents& events);
  void drop_other_events(AnswerEvents& events);

  std::optional<ReasoningParser> reasoning_;
  std::unique_ptr<ToolParser> tools_;
  Calls calls_;
  bool has_call_ = false;
};

}  // namespace weft
