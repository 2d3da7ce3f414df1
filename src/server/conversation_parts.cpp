#include "server/conversation_parts.h"

namespace weft {

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

}  // namespace weft
