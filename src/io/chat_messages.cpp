#include "io/chat_messages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/jinja/text.h"

namespace weft {
namespace {

// A text that no conversation has. It marks where the content ends in the text of the template. The space at its end is
// missing from this text if the template strips the content.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

// The names of reasoning, from the most common one.
constexpr const char* kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

std::string_view stripped(std::string_view text) { return jinja::strip_space(text, jinja::Side::both); }

void set_reasoning(Json& message) {
  const auto* const named = std::find_if(std::begin(kReasoning), std::end(kReasoning),
                                         [&](const char* name) { return message.contains(name); });
  if (named == std::end(kReasoning)) return;
  const Json reasoning = message[*named];
  if (!message.contains("thinking")) message["thinking"] = reasoning;
  if (!message.contains("reasoning")) message["reasoning"] = reasoning;
  message["reasoning_content"] = reasoning;
}

// The text to continue: the content of the last message, or the last text among its parts.
Json& unfinished_text(Json& variables) {
  Json& messages = variables["messages"];
  USER_CHECK(messages.is_array() && !messages.empty() && messages.back().is_object(),
             "[messages] wanted a last message to continue, but there is none");
  Json& message = messages.back();
  USER_CHECK(message.contains("content"), "[messages] wanted content to continue in the last message, but has none");
  Json& content = message["content"];
  if (content.is_array())
    for (auto part = content.rbegin(); part != content.rend(); ++part)
      if (part->is_object() && part->contains("text") && (*part)["text"].is_string()) return (*part)["text"];
  USER_CHECK(content.is_string(), "[messages] wanted text to continue in the last message, but it is {}",
             content.is_array() ? "a list of other parts" : fmt::format("a JSON {}", content.type_name()));
  return content;
}

// The parts of a text between separators.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; (at = text.find(separator)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

Json answer_message(const std::string& text) {
  constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>";
  if (text.find(kChannel) == std::string::npos) return {{"role", "assistant"}, {"content", text}};
  std::string content, thinking;
  for (const std::string_view part : split_at(text, kStart)) {
    const std::size_t channel = part.find(kChannel), message = part.find(kMessage);
    if (message == std::string_view::npos) continue;
    const std::string_view name = channel < message ? part.substr(channel + kChannel.size()) : std::string_view();
    (name.starts_with("analysis") ? thinking : content) += part.substr(message + kMessage.size());
  }
  Json result{{"role", "assistant"}, {"content", content}};
  if (!thinking.empty()) result["thinking"] = thinking;
  return result;
}

Json template_messages(const Json& messages) {
  USER_CHECK(messages.is_array(), "[messages] must be a list of messages, but is a JSON {}", messages.type_name());
  Json result = Json::array();
  for (const Json& message : messages) {
    USER_CHECK(message.is_object(), "[messages] each message must be an object, but message {} is a JSON {}",
               result.size(), message.type_name());
    Json kept = Json::object();
    // A client writes null for what a message does not have. Only the content may be null: templates ask whether a
    // message with calls of tools has `content is none`.
    for (const auto& [key, value] : message.items())
      if (!value.is_null() || key == "content") kept[key] = value;
    set_reasoning(kept);
    result.push_back(std::move(kept));
  }
  return result;
}

std::string render_unfinished(const ChatTemplate& chat_template, Json variables) {
  Json& content = unfinished_text(variables);
  const std::string begun = content.get<std::string>();
  content = begun + std::string(kMark);
  std::string text = chat_template.render(variables);
  const std::size_t at = text.rfind(stripped(kMark));
  USER_CHECK(at != std::string::npos && text.find(stripped(begun)) != std::string::npos,
             "[messages] the last message cannot be continued: the chat template does not write its content as it is");
  const bool keeps_spaces = text.compare(at, kMark.size(), kMark) == 0;
  text.resize(at);
  return keeps_spaces ? text : std::string(jinja::strip_space(text, jinja::Side::right));
}

}  // namespace weft
