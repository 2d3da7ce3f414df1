#pragma once

// A conversation with a model: its messages, rendered by a chat template, and the answers of an engine.

#include <functional>
#include <string>

#include "base/json.h"
#include "engine/engine.h"
#include "io/chat_template.h"

namespace weft {

// Returns the variables that transformers passes to a chat template: messages (io/chat_messages.h), tools and documents
// (none), add_generation_prompt, and bos_token, eos_token and so on, as far as the vocabulary has them. `messages` may
// be an object instead of a list; its keys are then variables that override the others. The keys of `arguments`
// override all.
Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt,
                    const Json& arguments = Json::object());

// Parses an object of additional variables for a chat template, such as {"enable_thinking": false}; "" is none of them.
// UserError that names `[what]` for another text, and for variables that the conversation defines.
Json parse_template_arguments(const std::string& text, const std::string& what);

// Returns the source of the template to render. If `given` is not "", it is the name of one of the checkpoint's
// templates or a file. Otherwise it is the checkpoint's template tool_use if there are tools and that template exists,
// else the checkpoint's default. Throws UserError if there is none. `checkpoint` may be null if a file is given.
std::string chosen_chat_template(const Checkpoint* checkpoint, const std::string& given, const Json& variables);

class Conversation {
 public:
  // `engine` must outlive the conversation. `chat_template` is the source of a template, and `arguments` has additional
  // variables for it. UserError if it does not parse.
  Conversation(Engine& engine, SamplingParameters parameters, const std::string& chat_template,
               Json arguments = Json::object())
      : engine_(engine),
        parameters_(std::move(parameters)),
        template_(chat_template),
        arguments_(std::move(arguments)) {}

  // Appends a message that the model does not answer: that of the system.
  void add(const char* role, const std::string& content);

  // Forgets all messages.
  void clear() { messages_ = Json::array(); }

  struct Answer {
    std::size_t prompt_tokens = 0;
    Engine::Generation generation;
  };
  // Appends the message of the user and the answer of the model. UserError if the message cannot be answered; the
  // conversation is then as it was before.
  Answer answer(const std::string& message, const std::function<void(const std::string&)>& on_text = {});

  const Json& messages() const { return messages_; }

 private:
  Engine& engine_;
  SamplingParameters parameters_;
  ChatTemplate template_;
  Json arguments_;
  Json messages_ = Json::array();
};

}  // namespace weft
