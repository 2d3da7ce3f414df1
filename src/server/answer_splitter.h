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
  // Either may be missing: there is no such part then. With `has_one_call` calls after the first are dropped.
  AnswerSplitter(std::optional<ReasoningParser> reasoning, std::unique_ptr<ToolParser> tools, bool has_one_call);

  AnswerEvents push(std::string_view text);
  // The answer is over: the events of what was held back.
  AnswerEvents finish();

 private:
  void take_answer(std::string_view text, AnswerEvents& events);
  void drop_further_calls(AnswerEvents& events);

  std::optional<ReasoningParser> reasoning_;
  std::unique_ptr<ToolParser> tools_;
  bool has_one_call_;
  bool has_call_ = false;
};

}  // namespace weft
