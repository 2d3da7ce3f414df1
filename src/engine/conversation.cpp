#include "engine/conversation.h"

#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/chat_messages.h"

namespace weft {
namespace {

constexpr std::size_t kMaxTemplateBytes = 1u << 20;
constexpr int kMaxArgumentDepth = 100;

}  // namespace

Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt,
                    const Json& arguments) {
  Json variables = Json::object();
  const auto add_token = [&](const char* name, const std::optional<int>& id) {
    if (id) variables[name] = vocabulary.tokens.at(static_cast<std::size_t>(*id));
  };
  add_token("bos_token", vocabulary.bos);
  add_token("eos_token", vocabulary.eos);
  add_token("pad_token", vocabulary.padding);
  add_token("unk_token", vocabulary.unknown);
  for (const auto& [name, text] : vocabulary.named_texts) {
    if (text) {
      variables[name] = *text;
    } else {
      variables.erase(name);
    }
  }
  // The conversation's own names are set after those of the files.
  variables["messages"] = messages.is_array() ? messages : Json::array();
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  for (const Json* more : {&messages, &arguments})
    if (more->is_object())
      for (const auto& [name, value] : more->items()) variables[name] = value;
  variables["messages"] = template_messages(variables["messages"]);
  return variables;
}

Json parse_template_arguments(const std::string& text, const std::string& what) {
  if (text.empty()) return Json::object();
  Json arguments = parse_json(text, what, {.most_bytes = kMaxTemplateBytes, .deepest = kMaxArgumentDepth});
  USER_CHECK(arguments.is_object(), "[{}] must be a JSON object, but is a JSON {}", what, arguments.type_name());
  for (const char* own : {"messages", "add_generation_prompt"})
    USER_CHECK(!arguments.contains(own), "[{}] must not have {}, which the conversation defines", what, own);
  return arguments;
}

std::string chosen_chat_template(const Checkpoint* checkpoint, const std::string& given, const Json& variables) {
  if (!given.empty()) {
    std::optional<std::string> named = checkpoint == nullptr ? std::nullopt : checkpoint->chat_template(given);
    if (named) return *named;
    std::vector<std::string> names =
        checkpoint == nullptr ? std::vector<std::string>() : checkpoint->chat_template_names();
    if (checkpoint != nullptr && checkpoint->chat_template("default")) names.insert(names.begin(), "default");
    USER_CHECK(file_status(given).kind != FileKind::missing,
               "[--chat-template] wanted the name of a template ({}) or a file, but there is neither of {}",
               names.empty() ? "the model has none" : fmt::format("{}", fmt::join(names, ", ")), quote(given));
    return read_file(given, kMaxTemplateBytes);
  }
  CHECK(checkpoint != nullptr, "a chat template of no checkpoint");
  // As transformers chooses.
  const auto tools = variables.find("tools");
  std::optional<std::string> text;
  if (tools != variables.end() && !tools->is_null()) text = checkpoint->chat_template("tool_use");
  if (!text) text = checkpoint->chat_template();
  const std::vector<std::string> names = checkpoint->chat_template_names();
  USER_CHECK(text.has_value(), "[chat template] the model at {} has none{}", checkpoint->path(),
             names.empty() ? "" : fmt::format(" for this; --chat-template takes {}", fmt::join(names, ", ")));
  return *text;
}

void Conversation::add(const char* role, const std::string& content) {
  const auto bad = first_invalid_utf8(content);
  USER_CHECK(!bad, "[chat] a message must be UTF-8, but is not from byte {} on", *bad);
  messages_.push_back({{"role", role}, {"content", content}});
}

Conversation::Answer Conversation::answer(const std::string& message,
                                          const std::function<void(const std::string&)>& on_text) {
  const Json before = messages_;
  try {
    add("user", message);
    const std::string prompt =
        template_.render(chat_variables(engine_.tokenizer().vocabulary(), messages_, true, arguments_));
    // The template writes the special tokens itself.
    const std::vector<int> ids = engine_.tokenizer().encode(prompt, {.add_special = false});
    Answer answer{.prompt_tokens = ids.size(), .generation = engine_.generate(ids, parameters_, on_text)};
    messages_.push_back(answer_message(answer.generation.text));
    return answer;
  } catch (const UserError&) {
    messages_ = before;
    throw;
  }
}

}  // namespace weft
