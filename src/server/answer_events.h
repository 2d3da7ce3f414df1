#pragma once

// What the text of a chat's answer consists of: content, reasoning and tool calls. Parsers report it in events, as text
// arrives. An answer in one piece collects the events, and a stream sends them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct AnswerEvent {
  enum class Kind : std::uint8_t {
    content,
    reasoning,
    call_begin,      // `text` is the name of the function
    call_arguments,  // `text` continues the arguments
    call_end,        // the call is whole
    call_broken,     // what began as a call is none: it is cut, or not JSON
  };
  Kind kind = Kind::content;
  std::string text;         // call_broken: all of the call as the model wrote it, with its marker
  std::string unsent = {};  // call_broken: the end of `text` that is in no event yet
};

using AnswerEvents = std::vector<AnswerEvent>;

// Appends text to the last event if that is of this kind, else adds an event. Does nothing for "".
void add_text(AnswerEvents& events, AnswerEvent::Kind kind, std::string_view text);

struct ToolCall {
  std::string name;
  std::string arguments;  // as the model wrote them
  bool operator==(const ToolCall&) const = default;
};

// An answer in one piece. A broken call is part of its content.
struct AnswerParts {
  std::string content, reasoning;
  std::vector<ToolCall> calls;  // the last one may not be whole yet

  void add(const AnswerEvent& event);
};

}  // namespace weft
