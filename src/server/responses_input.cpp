#include "server/responses_input.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "server/api_error.h"
#include "server/conversation_parts.h"
#include "server/json_body.h"
#include "server/names.h"

namespace weft {
namespace {

// An item of the input, and where it is.
struct Item {
  const Json& json;
  std::size_t index;

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw wrong_value(fmt::format("[input] item {} {}", index, sentence), "input");
  }
  const std::string& text(const char* key) const {
    if (!has_text(json, key)) refuse(fmt::format("must have the text {}", key));
    return json[key].get_ref<const std::string&>();
  }
};

// Kinds of parts of a content, and the key of their text.
struct PartRow {
  std::string_view type;
  const char* key;
};
constexpr PartRow kParts[] = {{"input_text", "text"},     {"output_text", "text"},  {"text", "text"},
                              {"reasoning_text", "text"}, {"summary_text", "text"}, {"refusal", "refusal"}};

// A content or an output as a chat has it: a text, or a list of parts of text.
Json content_of(const Item& item, const char* key) {
  const Json content = item.json.contains(key) ? item.json[key] : Json();
  if (content.is_string()) return content;
  if (!content.is_array()) item.refuse(fmt::format("must have a {} that is a text or a list of parts", key));
  Json parts = Json::array();
  for (const Json& part : content) {
    if (!part.is_object() || !has_text(part, "type")) item.refuse(fmt::format("has a part of {} without a type", key));
    const auto* row = std::find_if(std::begin(kParts), std::end(kParts),
                                   [&](const PartRow& one) { return part["type"] == one.type; });
    if (row == std::end(kParts))
      item.refuse(fmt::format("has a part of the type {}, but the model reads text alone: {}",
                              quote(part["type"].get<std::string>()),
                              names_of(kParts, [](const PartRow& one) { return one.type; })));
    if (!has_text(part, row->key)) item.refuse(fmt::format("has a part {} without the text {}", row->type, row->key));
    parts.push_back({{"type", "text"}, {"text", part[row->key]}});
  }
  return parts;
}

void add_message(const Item& item, Json& messages) {
  std::string role = item.text("role");
  if (role != "user" && role != "assistant" && role != "system" && role != "developer")
    item.refuse(fmt::format("must have the role user, assistant, system or developer, but has {}", quote(role)));
  // Most templates leave out the messages of a role that they do not know.
  if (role == "developer") role = "system";
  Json content = content_of(item, "content");
  Json* answer = role == "assistant" ? last_answer(messages) : nullptr;
  if (answer != nullptr && !answer->contains("content")) {
    (*answer)["content"] = std::move(content);
  } else {
    messages.push_back({{"role", role}, {"content", std::move(content)}});
  }
}

std::string joined(const Json& parts) {
  std::string text;
  for (const Json& part : parts) text += part["text"].get_ref<const std::string&>();
  return text;
}

// A reasoning begins an answer, to which the message and the calls after it belong.
void add_reasoning(const Item& item, Json& messages) {
  const bool has_content = is_given(item.json, "content") && !item.json["content"].empty();
  if (!has_content && is_given(item.json, "encrypted_content"))
    item.refuse("has its reasoning in encrypted_content, which this server cannot read");
  const char* key = has_content ? "content" : "summary";
  if (!is_given(item.json, key)) return;
  const Json parts = content_of(item, key);
  const std::string text = parts.is_string() ? parts.get<std::string>() : joined(parts);
  Json* answer = last_answer(messages);
  if (answer != nullptr && !answer->contains("content") && !answer->contains("tool_calls")) {
    (*answer)["reasoning"] = (*answer)["reasoning"].get<std::string>() + text;
  } else {
    messages.push_back({{"role", "assistant"}, {"reasoning", text}});
  }
}

void add_call(const Item& item, Json& messages) {
  Json call{{"id", item.text("call_id")},
            {"type", "function"},
            {"function", {{"name", item.text("name")}, {"arguments", item.text("arguments")}}}};
  Json* answer = last_answer(messages);
  if (answer == nullptr) {
    messages.push_back({{"role", "assistant"}});
    answer = &messages.back();
  }
  (*answer)["tool_calls"].push_back(std::move(call));
}

void add_call_output(const Item& item, Json& messages) {
  messages.push_back(
      {{"role", "tool"}, {"tool_call_id", item.text("call_id")}, {"content", content_of(item, "output")}});
}

struct ItemRow {
  std::string_view type;
  void (*add)(const Item& item, Json& messages);
};
constexpr ItemRow kItems[] = {{"message", add_message},
                              {"reasoning", add_reasoning},
                              {"function_call", add_call},
                              {"function_call_output", add_call_output}};

void add_item(const Item& item, Json& messages) {
  if (!item.json.is_object()) item.refuse("must be an object");
  const std::string type = item.json.contains("type") ? item.text("type") : "message";
  for (const ItemRow& row : kItems)
    if (row.type == type) return row.add(item, messages);
  item.refuse(fmt::format("has the type {}, but these are known: {}", quote(type),
                          names_of(kItems, [](const ItemRow& one) { return one.type; })));
}

Json messages_of(const Json& items) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) add_item({items[i], i}, messages);
  add_missing_contents(messages);
  return messages;
}

// Without the members that are null.
Json nested_tool(const Json& tool) {
  Json function = Json::object();
  for (const auto& [key, value] : tool.items())
    if (key != "type" && !value.is_null()) function[key] = value;
  return {{"type", "function"}, {"function", std::move(function)}};
}

[[noreturn]] void refuse_tool(const char* field, const Json& type) {
  throw wrong_value(fmt::format("[{}] must have the type function, but has {}: the tools of this server are functions "
                                "of the client",
                                field, quote(type.get<std::string>())),
                    field);
}

// All that OpenAI's clients may ask for. The others are about items that are never in an answer of this server.
constexpr std::string_view kIncludedLogprobs = "message.output_text.logprobs";
constexpr std::string_view kIncludable[] = {kIncludedLogprobs,
                                            "reasoning.encrypted_content",
                                            "file_search_call.results",
                                            "web_search_call.results",
                                            "web_search_call.action.sources",
                                            "message.input_image.image_url",
                                            "computer_call_output.output.image_url",
                                            "code_interpreter_call.outputs"};

}  // namespace

std::string read_input(Element value, ApiRequest& request) {
  const Json input = to_json(value, "input");
  if (input.is_string()) {
    request.messages = Json::array({{{"role", "user"}, {"content", input}}});
    return "";
  }
  if (!input.is_array()) return "a text or a list of items";
  request.messages = messages_of(input);
  return "";
}

std::string read_flat_tools(Element value, ApiRequest& request) {
  static constexpr const char* kWanted = "a list of {\"type\":\"function\",\"name\":..,\"parameters\":{..}}";
  const Json tools = to_json(value, "tools");
  if (!tools.is_array()) return kWanted;
  request.tools = nullptr;
  for (const Json& tool : tools) {
    if (!tool.is_object() || !has_text(tool, "type")) return kWanted;
    if (tool["type"] != "function") refuse_tool("tools", tool["type"]);
    const Json parameters = tool.value("parameters", Json());
    if (!has_text(tool, "name") || !(parameters.is_null() || parameters.is_object())) return kWanted;
    request.tools.push_back(nested_tool(tool));
  }
  request.repeated["tools"] = tools;
  return "";
}

std::string read_flat_choice(Element value, ApiRequest& request) {
  static constexpr const char* kWanted = "none, auto, required or {\"type\":\"function\",\"name\":..}";
  using Kind = ToolChoice::Kind;
  const Json choice = to_json(value, "tool_choice");
  if (choice.is_string()) {
    if (choice != "none" && choice != "auto" && choice != "required") return kWanted;
    request.tool_choice = {.kind = choice == "none" ? Kind::none : choice == "auto" ? Kind::automatic : Kind::required};
  } else {
    if (!choice.is_object() || !has_text(choice, "type")) return kWanted;
    if (choice["type"] == "allowed_tools")
      throw WrongPart{"of the type allowed_tools is not supported: give the allowed tools alone in tools"};
    if (choice["type"] != "function") refuse_tool("tool_choice", choice["type"]);
    if (!has_text(choice, "name")) return kWanted;
    request.tool_choice = {.kind = Kind::named, .function = choice["name"]};
  }
  request.repeated["tool_choice"] = choice;
  return "";
}

std::string read_text_options(Element value, ApiRequest& request) {
  const Json options = to_json(value, "text");
  if (!options.is_object()) return "an object";
  request.repeated["text"] = options;
  if (!is_given(options, "format")) return "";
  const Json& format = options["format"];
  if (!format.is_object()) return "an object whose format is an object";
  request.response_format = format;
  if (format.value("type", Json()) != "json_schema") return "";
  if (!is_given(format, "schema")) return "an object whose format has a schema";
  request.response_format = {{"type", "json_schema"}, {"json_schema", format}};
  return "";
}

std::string read_reasoning(Element value, ApiRequest& request) {
  const Json reasoning = to_json(value, "reasoning");
  if (!reasoning.is_object()) return "an object";
  request.repeated["reasoning"] = reasoning;
  if (!is_given(reasoning, "effort")) return "";
  if (!has_text(reasoning, "effort")) return "an object whose effort is a text";
  request.reasoning_effort = reasoning["effort"];
  return "";
}

std::string read_include(Element value, ApiRequest& request) {
  const auto is_known = [](const Json& one) {
    return std::any_of(std::begin(kIncludable), std::end(kIncludable),
                       [&](std::string_view name) { return one == name; });
  };
  const auto known = [] { return names_of(kIncludable, [](std::string_view name) { return name; }); };
  const Json include = to_json(value, "include");
  if (!include.is_array()) return fmt::format("a list of {}", known());
  const auto unknown = std::find_if_not(include.begin(), include.end(), is_known);
  if (unknown != include.end())
    throw WrongPart{fmt::format("item {} must be {}, but is {}", unknown - include.begin(), known(), shown(*unknown))};
  request.wants_logprobs = std::find(include.begin(), include.end(), kIncludedLogprobs) != include.end();
  return "";
}

}  // namespace weft
