#include "server/messages_input.h"

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

enum TurnRole : unsigned { user_turn = 1, assistant_turn = 2, system_turn = 4 };

struct TurnRoleRow {
  std::string_view name;
  TurnRole role;
};
constexpr TurnRoleRow kTurnRoles[] = {{"user", user_turn}, {"assistant", assistant_turn}, {"system", system_turn}};

// A block of a message, and where it is.
struct TurnBlock {
  const Json& json;
  std::size_t turn, index;

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw wrong_value(fmt::format("[messages] message {}, block {} {}", turn, index, sentence), "messages");
  }
  const std::string& text(const char* key) const {
    if (!has_text(json, key)) refuse(fmt::format("must have the text {}", key));
    return json[key].get_ref<const std::string&>();
  }
};

// What the blocks of one message are in a chat.
struct ReadTurn {
  Json parts = Json::array();  // of text
  std::string reasoning;
  Json calls = Json::array(), results = Json::array();  // messages of tools
};

Json text_part(const std::string& text) { return {{"type", "text"}, {"text", text}}; }

void add_text_block(const TurnBlock& block, ReadTurn& turn) { turn.parts.push_back(text_part(block.text("text"))); }

void add_thinking_block(const TurnBlock& block, ReadTurn& turn) { turn.reasoning += block.text("thinking"); }

// It is encrypted by another server: nothing of it can be read.
void add_redacted_block(const TurnBlock& block, ReadTurn&) { block.text("data"); }

void add_tool_use(const TurnBlock& block, ReadTurn& turn) {
  if (!block.json.contains("input") || !block.json["input"].is_object()) block.refuse("must have the object input");
  turn.calls.push_back({{"id", block.text("id")},
                        {"type", "function"},
                        {"function", {{"name", block.text("name")}, {"arguments", block.json["input"]}}}});
}

// Templates have no other way to say that a call failed than its text.
void add_tool_result(const TurnBlock& block, ReadTurn& turn) {
  Json parts = Json::array();
  const Json content = block.json.value("content", Json());
  if (content.is_string()) parts.push_back(text_part(content));
  if (!content.is_string() && !content.is_array() && !content.is_null())
    block.refuse("must have a content that is a text or a list of blocks");
  for (const Json& part : content.is_array() ? content : Json::array()) {
    if (!part.is_object() || !has_text(part, "type")) block.refuse("has a part of content without a type");
    if (part["type"] != "text")
      block.refuse(fmt::format("has a part of the type {}, but the model reads text alone",
                               quote(part["type"].get<std::string>())));
    if (!has_text(part, "text")) block.refuse("has a part text without the text text");
    parts.push_back(text_part(part["text"]));
  }
  if (block.json.value("is_error", Json(false)) == true) {
    if (parts.empty()) parts.push_back(text_part(""));
    parts[0]["text"] = "Error: " + parts[0]["text"].get<std::string>();
  }
  turn.results.push_back(
      {{"role", "tool"}, {"tool_call_id", block.text("tool_use_id")}, {"content", std::move(parts)}});
}

struct BlockRow {
  std::string_view type;
  unsigned roles;
  void (*add)(const TurnBlock& block, ReadTurn& turn);
};
constexpr BlockRow kBlocks[] = {{"text", user_turn | assistant_turn | system_turn, add_text_block},
                                {"tool_result", user_turn, add_tool_result},
                                {"thinking", assistant_turn, add_thinking_block},
                                {"redacted_thinking", assistant_turn, add_redacted_block},
                                {"tool_use", assistant_turn, add_tool_use}};

void add_block(const TurnBlock& block, const TurnRoleRow& role, ReadTurn& turn) {
  if (!block.json.is_object()) block.refuse("must be an object");
  const std::string& type = block.text("type");
  std::string known;
  for (const BlockRow& row : kBlocks) {
    if ((row.roles & role.role) == 0) continue;
    if (row.type == type) return row.add(block, turn);
    known.append(known.empty() ? "" : ", ").append(row.type);
  }
  block.refuse(
      fmt::format("has the type {}, but the model reads text alone, and these are the blocks of the role {}: {}",
                  quote(type), role.name, known));
}

// Consecutive messages of one role are one, as in Anthropic's API.
Json& message_of(std::string_view role, Json& messages) {
  if (messages.empty() || messages.back()["role"] != role) messages.push_back({{"role", role}});
  return messages.back();
}

void add_parts(const Json& parts, Json& message) {
  for (const Json& part : parts) message["content"].push_back(part);
}

// The results of calls follow the message with the calls, also if there is a system message between them.
void add_results(const Json& results, Json& messages) {
  auto at = messages.end();
  while (at != messages.begin() && (*(at - 1))["role"] == "system") --at;
  const bool follows_calls = at != messages.begin() && (*(at - 1)).contains("tool_calls");
  if (!follows_calls) at = messages.end();
  messages.insert(at, results.begin(), results.end());
}

void add_turn(const TurnRoleRow& role, const ReadTurn& turn, Json& messages) {
  if (role.role == system_turn && !turn.parts.empty()) {
    messages.push_back({{"role", "system"}, {"content", turn.parts}});
  } else if (role.role == user_turn) {
    if (!turn.results.empty()) add_results(turn.results, messages);
    if (!turn.parts.empty()) add_parts(turn.parts, message_of("user", messages));
  } else if (!turn.parts.empty() || !turn.reasoning.empty() || !turn.calls.empty()) {
    Json& message = message_of("assistant", messages);
    if (!turn.reasoning.empty()) message["reasoning"] = message.value("reasoning", std::string()) + turn.reasoning;
    add_parts(turn.parts, message);
    for (const Json& call : turn.calls) message["tool_calls"].push_back(call);
  }
}

[[noreturn]] void refuse_turn(std::size_t turn, const std::string& sentence) {
  throw wrong_value(fmt::format("[messages] message {} {}", turn, sentence), "messages");
}

void read_turn(const Json& json, std::size_t index, Json& messages) {
  if (!json.is_object() || !has_text(json, "role")) refuse_turn(index, "must be an object with a role");
  const auto* role = std::find_if(std::begin(kTurnRoles), std::end(kTurnRoles),
                                  [&](const TurnRoleRow& one) { return json["role"] == one.name; });
  if (role == std::end(kTurnRoles))
    refuse_turn(index, fmt::format("must have the role user, assistant or system, but has {}",
                                   quote(json["role"].get<std::string>())));
  const Json content = json.value("content", Json());
  ReadTurn turn;
  if (content.is_string()) {
    turn.parts.push_back(text_part(content));
  } else if (content.is_array()) {
    for (std::size_t i = 0; i < content.size(); ++i) add_block({content[i], index, i}, *role, turn);
  } else {
    refuse_turn(index, "must have a content that is a text or a list of blocks");
  }
  add_turn(*role, turn, messages);
}

// Claude Code's hash of its request would make every prompt another one, so that the prefix cache finds nothing.
bool is_billing_note(std::string_view text) { return text.starts_with("x-anthropic-billing-header"); }

// Members that say how Anthropic's server stores or calls a tool, and nothing to the model.
constexpr std::string_view kUnseenOfTools[] = {"type", "cache_control", "eager_input_streaming", "defer_loading",
                                               "allowed_callers"};

[[noreturn]] void refuse_client_tool(std::size_t index, const std::string& sentence) {
  throw wrong_value(fmt::format("[tools] tool {} {}", index, sentence), "tools");
}

Json function_of(const Json& tool, std::size_t index) {
  if (!tool.is_object()) refuse_client_tool(index, "must be an object");
  if (is_given(tool, "type") && tool["type"] != "custom")
    refuse_client_tool(index,
                       fmt::format("has the type {}, but the tools of this server are functions of the client, which "
                                   "have the type custom or none",
                                   json_text(tool["type"])));
  if (!has_text(tool, "name")) refuse_client_tool(index, "must have the text name");
  if (!tool.contains("input_schema") || !tool["input_schema"].is_object())
    refuse_client_tool(index, "must have the object input_schema");
  if (tool.value("defer_loading", Json(false)) == true)
    refuse_client_tool(index, "has defer_loading, but there is no search for tools here");
  Json function = Json::object();
  for (const auto& [key, value] : tool.items()) {
    const bool is_unseen =
        std::find(std::begin(kUnseenOfTools), std::end(kUnseenOfTools), key) != std::end(kUnseenOfTools);
    if (!is_unseen && !value.is_null()) function[key == "input_schema" ? "parameters" : key] = value;
  }
  return function;
}

}  // namespace

std::string read_turns(Element value, ApiRequest& request) {
  if (!value.is_array()) return "a list of messages";
  const Json turns = to_json(value, "messages");
  request.messages = Json::array();
  for (std::size_t i = 0; i < turns.size(); ++i) read_turn(turns[i], i, request.messages);
  if (request.messages.empty()) return "a list with at least one message that has a content";
  const Json* answer = last_answer(request.messages);
  if (answer != nullptr && answer->contains("tool_calls"))
    refuse_turn(turns.size() - 1, "is the last one, so it must not have a tool_use: its tool_result is missing");
  // The answer continues it.
  if (answer != nullptr) request.continue_final_message = true;
  add_missing_contents(request.messages);
  return "";
}

std::string read_system(Element value, ApiRequest& request) {
  static constexpr const char* kWanted = "a text or a list of blocks {\"type\":\"text\",\"text\":..}";
  const Json system = to_json(value, "system");
  if (!system.is_string() && !system.is_array()) return kWanted;
  std::string text;
  for (const Json& block : system.is_string() ? Json::array({text_part(system)}) : system) {
    if (!block.is_object() || block.value("type", Json()) != "text" || !has_text(block, "text")) return kWanted;
    const auto& more = block["text"].get_ref<const std::string&>();
    if (is_billing_note(more)) continue;
    if (!text.empty()) text += '\n';
    text += more;
  }
  if (!text.empty()) request.instructions = text;
  return "";
}

std::string read_client_tools(Element value, ApiRequest& request) {
  const Json tools = to_json(value, "tools");
  if (!tools.is_array()) return "a list of {\"name\":..,\"description\":..,\"input_schema\":{..}}";
  request.tools = nullptr;
  for (std::size_t i = 0; i < tools.size(); ++i)
    request.tools.push_back({{"type", "function"}, {"function", function_of(tools[i], i)}});
  return "";
}

std::string read_client_choice(Element value, ApiRequest& request) {
  static constexpr const char* kWanted =
      "an object of the type auto, any, none or tool, with a name if it is tool, and true or false for "
      "disable_parallel_tool_use";
  using Kind = ToolChoice::Kind;
  struct Row {
    std::string_view type;
    Kind kind;
  };
  static constexpr Row kRows[] = {
      {"auto", Kind::automatic}, {"any", Kind::required}, {"none", Kind::none}, {"tool", Kind::named}};
  const Json choice = to_json(value, "tool_choice");
  if (!choice.is_object() || !has_text(choice, "type")) return kWanted;
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return choice["type"] == one.type; });
  if (row == std::end(kRows)) return kWanted;
  request.tool_choice = {.kind = row->kind};
  if (row->kind == Kind::named) {
    if (!has_text(choice, "name")) return kWanted;
    request.tool_choice->function = choice["name"];
  }
  if (!is_given(choice, "disable_parallel_tool_use")) return "";
  if (!choice["disable_parallel_tool_use"].is_boolean()) return kWanted;
  request.parallel_tool_calls = !choice["disable_parallel_tool_use"].get<bool>();
  return "";
}

// The model ends its reasoning itself: budget_tokens is a number that nothing enforces.
std::string read_thinking(Element value, ApiRequest& request) {
  const Json thinking = to_json(value, "thinking");
  if (!thinking.is_object()) return "an object with a type";
  const Json type = thinking.value("type", Json()), budget = thinking.value("budget_tokens", Json()),
             display = thinking.value("display", Json());
  const auto check = [](bool fits, const char* key, const char* wanted, const Json& found) {
    if (!fits) throw WrongPart{fmt::format("{} must be {}, but is {}", key, wanted, shown(found))};
  };
  check(type == "enabled" || type == "disabled" || type == "adaptive", "type", "enabled, disabled or adaptive", type);
  check(budget.is_null() || budget.is_number_integer(), "budget_tokens", "an integer", budget);
  check(display.is_null() || display == "summarized" || display == "omitted", "display", "summarized or omitted",
        display);
  // The template has its own default, as it has for a chat.
  if (type != "adaptive") request.enables_thinking = type == "enabled";
  if (!display.is_null()) request.include_reasoning = display != "omitted";
  return "";
}

std::string read_output_format(Element value, ApiRequest& request) {
  const Json format = to_json(value, "output_format");
  const bool is_schema =
      format.is_object() && format.value("type", Json()) == "json_schema" && is_given(format, "schema");
  if (!is_schema) return "{\"type\":\"json_schema\",\"schema\":{..}}";
  request.response_format = {{"type", "json_schema"}, {"json_schema", {{"schema", format["schema"]}}}};
  return "";
}

std::string read_output_config(Element value, ApiRequest& request) {
  simdjson::dom::object config;
  if (value.get(config) != simdjson::SUCCESS) return "an object";
  for (const auto& [key, member] : last_members(config)) {
    if (member.is_null()) continue;
    std::string_view effort;
    if (key == "effort") {
      if (member.get(effort) != simdjson::SUCCESS) return "an object whose effort is a text";
      request.reasoning_effort = effort;
    } else if (key == "format") {
      const std::string wanted = read_output_format(member, request);
      if (!wanted.empty()) return "an object whose format is " + wanted;
    } else {
      throw wrong_value(fmt::format("[output_config] the key {} is not known", quote(key)), "output_config");
    }
  }
  return "";
}

// Which reasoning of earlier turns the model sees is up to its template, whatever the client clears.
std::string read_context_management(Element value, ApiRequest&) {
  const Json management = to_json(value, "context_management");
  if (!management.is_object()) return "an object";
  const Json edits = management.value("edits", Json());
  if (!edits.is_array() && !edits.is_null()) return "an object whose edits are a list";
  for (const Json& edit : edits.is_array() ? edits : Json::array()) {
    if (!edit.is_object() || !has_text(edit, "type")) return "an object whose edits have a type";
    const std::string type = edit["type"];
    if (!type.starts_with("clear_thinking"))
      throw wrong_value(fmt::format("[context_management] the edit {} is not made here: send the conversation that the "
                                    "model is to see",
                                    quote(type)),
                        "context_management");
  }
  return "";
}

}  // namespace weft
