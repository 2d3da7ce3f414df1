#include "apps/cli/conversation.h"

#include "base/error.h"

namespace weft {

Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt) {
  Json variables{{"messages", messages.is_array() ? messages : Json::array()},
                 {"tools", nullptr},
                 {"documents", nullptr},
                 {"add_generation_prompt", add_generation_prompt}};
  const auto add_token = [&](const char* name, const std::optional<int>& id) {
    if (id) variables[name] = vocabulary.tokens.at(static_cast<std::size_t>(*id));
  };
  add_token("bos_token", vocabulary.bos);
  add_token("eos_token", vocabulary.eos);
  add_token("pad_token", vocabulary.padding);
  add_token("unk_token", vocabulary.unknown);
  if (messages.is_object())
    for (const auto& [name, value] : messages.items()) variables[name] = value;
  return variables;
}

std::string required_chat_template(const Checkpoint& checkpoint) {
  std::optional<std::string> text = checkpoint.chat_template();
  USER_CHECK(text.has_value(), "[chat template] the model at {} has none", checkpoint.path());
  return *text;
}

}  // namespace weft
