#include "server/tool_fields.h"

#include <string_view>

#include "server/conversation_parts.h"
#include "server/json_body.h"

namespace weft {

std::string read_tools(Element value, ApiRequest& request) {
  if (!value.is_array()) return "a list of tools";
  request.tools = to_json(value, "tools");
  for (const Json& tool : request.tools) {
    const bool is_function =
        tool.is_object() && has_text(tool, "type") && tool["type"] == "function" && tool.contains("function");
    if (!is_function || !tool["function"].is_object() || !has_text(tool["function"], "name"))
      return "a list of {\"type\":\"function\",\"function\":{\"name\":..}}";
    const Json parameters = tool["function"].value("parameters", Json());
    if (!parameters.is_null() && !parameters.is_object()) return "a list of tools whose parameters are an object";
  }
  return "";
}

std::string read_tool_choice(Element value, ApiRequest& request) {
  static constexpr const char* kWanted = "none, auto, required or {\"type\":\"function\",\"function\":{\"name\":..}}";
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    using Kind = ToolChoice::Kind;
    if (text != "none" && text != "auto" && text != "required") return kWanted;
    request.tool_choice = {.kind = text == "none" ? Kind::none : text == "auto" ? Kind::automatic : Kind::required};
    return "";
  }
  const Json choice = to_json(value, "tool_choice");
  const bool is_function = choice.is_object() && choice.value("type", Json()) == "function" &&
                           choice.value("function", Json()).is_object() && has_text(choice["function"], "name");
  if (!is_function) return kWanted;
  request.tool_choice = {.kind = ToolChoice::Kind::named, .function = choice["function"]["name"]};
  return "";
}

}  // namespace weft
