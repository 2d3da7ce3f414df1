#include "server/message_checks.h"

#include <string>

#include <fmt/format.h>

#include "server/conversation_parts.h"
#include "server/json_body.h"
#include "server/request_fields.h"

namespace weft {
namespace {

void check_part(const Json& part, const std::string& where) {
  if (!part.is_object()) throw WrongPart{fmt::format("{} must be an object, but is {}", where, shown(part))};
  if (is_given(part, "type") && !has_text(part, "type"))
    throw WrongPart{fmt::format("{} must have a type that is a text, but has {}", where, shown(part["type"]))};
  const bool is_text = !is_given(part, "type") || part["type"] == "text";
  if (!is_text || has_text(part, "text")) return;
  const std::string found = part.contains("text") ? shown(part["text"]) : "none";
  throw WrongPart{fmt::format("{} must have a text, but has {}", where, found)};
}

void check_content(const Json& message, const std::string& where) {
  if (!is_given(message, "content") || has_text(message, "content")) return;
  const Json& content = message["content"];
  if (!content.is_array())
    throw WrongPart{
        fmt::format("{} must have a content that is a text or a list of parts, but has {}", where, shown(content))};
  for (std::size_t i = 0; i < content.size(); ++i)
    check_part(content[i], fmt::format("{}, part {} of the content", where, i));
}

void check_call(const Json& call, const std::string& where) {
  if (!call.is_object()) throw WrongPart{fmt::format("{} must be an object, but is {}", where, shown(call))};
  if (!is_given(call, "function") || !call["function"].is_object())
    throw WrongPart{fmt::format("{} must have a function that is an object", where)};
  const Json& function = call["function"];
  if (!has_text(function, "name")) throw WrongPart{fmt::format("{} must have a function with a name", where)};
  if (!is_given(function, "arguments")) return;
  const Json& arguments = function["arguments"];
  if (!arguments.is_string() && !arguments.is_object())
    throw WrongPart{
        fmt::format("{} must have arguments that are the text of a JSON object, but has {}", where, shown(arguments))};
}

}  // namespace

void check_messages(const Json& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const std::string where = fmt::format("message {}", i);
    if (!message.is_object()) throw WrongPart{fmt::format("{} must be an object, but is {}", where, shown(message))};
    if (!has_text(message, "role")) throw WrongPart{fmt::format("{} must have a role, which is a text", where)};
    check_content(message, where);
    if (!is_given(message, "tool_calls")) continue;
    const Json& calls = message["tool_calls"];
    if (!calls.is_array())
      throw WrongPart{fmt::format("{} must have tool_calls that are a list, but has {}", where, shown(calls))};
    for (std::size_t call = 0; call < calls.size(); ++call)
      check_call(calls[call], fmt::format("{}, call {}", where, call));
  }
}

}  // namespace weft
