#include "server/tool_calls/tool_messages.h"

#include <fmt/format.h>

#include "server/api_error.h"

namespace weft {
namespace {

void parse_arguments(Json& call, const char* field) {
  const auto function = call.find("function");
  if (function == call.end() || !function->is_object()) return;
  Json& arguments = (*function)["arguments"];
  if (arguments.is_null() || arguments == "") arguments = Json::object();
  if (!arguments.is_string()) return;
  Json parsed = parse_json(arguments.get_ref<const std::string&>());
  if (!parsed.is_object())
    throw wrong_value(fmt::format("[{}] the arguments of a tool call must be the text of a JSON object", field), field);
  arguments = std::move(parsed);
}

bool has_calls(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

std::string content_of(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string() ? content->get<std::string>() : "";
}

}  // namespace

Json with_parsed_arguments(Json messages, const char* field) {
  for (Json& message : messages) {
    if (!has_calls(message)) continue;
    for (Json& call : message["tool_calls"]) {
      if (!call.is_object()) throw wrong_value(fmt::format("[{}] a tool call must be an object", field), field);
      parse_arguments(call, field);
    }
  }
  return messages;
}

Json with_tools_in_system_message(Json messages, const Json& tools) {
  std::string text = "You can call these functions. Each line describes one:\n<tools>\n";
  for (const Json& tool : tools) text += json_text(tool) + "\n";
  text +=
      "</tools>\nTo call a function, write its name and its arguments as JSON, in this form:\n"
      "<tool_call>\n{\"name\": NAME, \"arguments\": {KEY: VALUE}}\n</tool_call>";
  if (!messages.empty() && messages[0].value("role", "") == "system") {
    const std::string before = content_of(messages[0]);
    messages[0]["content"] = before.empty() ? text : before + "\n\n" + text;
  } else {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
  }
  return messages;
}

Json with_calls_as_content(Json messages) {
  for (Json& message : messages) {
    if (message.value("role", "") == "tool") {
      message["content"] = "<tool_response>\n" + content_of(message) + "\n</tool_response>";
      message["role"] = "user";
    }
    if (!has_calls(message)) continue;
    std::string text = content_of(message);
    for (const Json& call : message["tool_calls"]) {
      const Json function = call.value("function", Json::object());
      const Json written{{"name", function.value("name", Json(""))},
                         {"arguments", function.value("arguments", Json::object())}};
      if (!text.empty()) text += '\n';
      text += "<tool_call>\n" + json_text(written) + "\n</tool_call>";
    }
    message["content"] = text;
    message.erase("tool_calls");
  }
  return messages;
}

}  // namespace weft
