#include "server/score_template.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/conversation.h"

namespace weft {
namespace {

// Once for each place of the text, so that a query with the word {document} stays as it is.
std::string filled(const std::string& plain, const std::string& query, const std::string& document) {
  const std::pair<std::string_view, const std::string&> texts[] = {{"{query}", query}, {"{document}", document}};
  std::string prompt;
  for (std::size_t at = 0; at < plain.size();) {
    std::size_t length = 0;
    for (const auto& [word, text] : texts) {
      if (plain.compare(at, word.size(), word) != 0) continue;
      prompt += text;
      length = word.size();
    }
    if (length == 0) prompt += plain[at];
    at += std::max<std::size_t>(length, 1);
  }
  return prompt;
}

}  // namespace

ScoreTemplate::ScoreTemplate(ScorePrompt prompt) : prompt_(std::move(prompt)) {
  if (!prompt_.is_plain) template_.emplace(prompt_.source);
}

std::string ScoreTemplate::render(const std::string& query, const std::string& document,
                                  const std::optional<std::string>& instruction, const Vocabulary& vocabulary) const {
  if (!template_) return filled(prompt_.source, query, document);
  Json messages = Json::array(), arguments = prompt_.arguments;
  const auto add = [&](const char* role, const std::string& text) {
    const Json content = prompt_.has_parts ? Json::array({{{"type", "text"}, {"text", text}}}) : Json(text);
    messages.push_back({{"role", role}, {"content", content}});
  };
  const std::string& system = instruction ? *instruction : prompt_.instruction;
  if (!system.empty()) add("system", system);
  add("query", query);
  add("document", document);
  if (instruction) arguments["instruction"] = *instruction;
  const auto stated = arguments.find("add_generation_prompt");
  const bool begins_answer = stated != arguments.end() && *stated == true;
  arguments.erase("add_generation_prompt");
  return template_->render(chat_variables(vocabulary, messages, begins_answer, arguments));
}

bool ScoreTemplate::has_both_texts(const Vocabulary& vocabulary) const {
  try {
    const std::string text = render("the question", "the passage", std::nullopt, vocabulary);
    return text.find("the question") != std::string::npos && text.find("the passage") != std::string::npos;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace weft
