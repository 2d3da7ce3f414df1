#include "server/conversation_parts.h"

namespace weft {
namespace {

void add_content(Json& message, const Json& added) {
  if (!message["content"].is_string()) message["content"] = "";
  auto& content = message["content"].get_ref<std::string&>();
  if (!content.empty()) content += '\n';
  content += added["content"].get_ref<const std::string&>();
}

}  // namespace

bool has_text(const Json& object, const char* key) { return object.contains(key) && object[key].is_string(); }

bool is_given(const Json& object, const char* key) { return object.contains(key) && !object[key].is_null(); }

Json* last_answer(Json& messages) {
  const bool is_answer = !messages.empty() && messages.back()["role"] == "assistant";
  return is_answer ? &messages.back() : nullptr;
}

void add_missing_contents(Json& messages) {
  for (Json& message : messages)
    if (!message.contains("content")) message["content"] = message.contains("tool_calls") ? Json(nullptr) : Json("");
}

Json with_instructions(Json messages, const std::string& instructions) {
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", instructions}});
  return messages;
}

Json with_one_system_message(const Json& messages, bool reads_late) {
  Json joined = Json::array();
  bool joins_user = false;  // the last message is of the user because it was a system message
  for (const Json& message : messages) {
    const std::string role = message["role"];
    const std::string before = joined.empty() ? "" : joined.back()["role"].get<std::string>();
    const bool is_system = role == "system";
    const bool is_first = is_system && joined.size() == 1 && before == "system";
    const bool is_late = is_system && !reads_late && !joined.empty();
    if (is_first || (is_late && (before == "user" || before == "tool")) || (joins_user && role == "user")) {
      add_content(joined.back(), message);
      continue;
    }
    joined.push_back(message);
    joins_user = is_late;
    if (is_late) joined.back()["role"] = "user";
  }
  return joined;
}

Json with_one_text_beside_calls(Json messages) {
  for (Json& message : messages) {
    if (!is_given(message, "tool_calls") || !has_text(message, "reasoning") || !has_text(message, "content")) continue;
    const std::string reasoning = message["reasoning"], content = message["content"];
    if (reasoning.empty() || content.empty()) continue;
    message["reasoning"] = reasoning + '\n' + content;
    message["content"] = nullptr;
  }
  return messages;
}

}  // namespace weft
