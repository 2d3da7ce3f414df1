#pragma once

// Separates the reasoning of an answer, which some models write between two markers before the answer itself.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/answer_events.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {

struct ReasoningFormat {
  std::string_view name;  // of --reasoning-parser
  std::string_view begin, end;
  std::string_view also = {};  // vLLM's names of it, with spaces between them
};

// vLLM's name of reasoning in the channels of gpt-oss, which the dialect `openai` of calls reads.
inline constexpr std::string_view kChannelReasoning = "openai_gptoss";

std::string reasoning_format_names();  // with commas between them, and that of channels
// What is wrong with a name of --reasoning-parser that is none of these.
std::string wrong_reasoning_format(std::string_view name);
// nullptr if there is none of this name, or if the template has no marker of a format.
const ReasoningFormat* find_reasoning_format(std::string_view name);
const ReasoningFormat* reasoning_format_of(std::string_view chat_template);

// Whether an answer to this prompt begins within the reasoning, because the template wrote the marker.
bool begins_reasoning(std::string_view prompt, const ReasoningFormat& format);
// Whether the reasoning is over before the answer, because the template wrote both markers.
bool ends_reasoning(std::string_view prompt, const ReasoningFormat& format);

// White space around the reasoning is dropped.
class ReasoningParser {
 public:
  // With `keeps_space` white space after the reasoning is part of the answer.
  ReasoningParser(const ReasoningFormat& format, bool begins_inside, bool keeps_space = false);

  // Reports the reasoning, and appends the text of the answer itself to `answer`.
  void push(std::string_view text, AnswerEvents& events, std::string& answer);
  void finish(AnswerEvents& events, std::string& answer);

 private:
  enum class State : std::uint8_t { start, reasoning, after, answer };

  void take_start(char c, std::string& answer);

  const ReasoningFormat& format_;
  bool keeps_space_;
  State state_;
  std::string held_;  // at the start: white space and the begin of a marker
  TextScanner text_;
};

}  // namespace weft
