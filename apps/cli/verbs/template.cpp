#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"
#include "engine/conversation.h"
#include "io/chat_messages.h"

namespace weft {
namespace {

constexpr std::size_t kMaxMessageBytes = 64u << 20;

struct TemplateArguments {
  ModelArgument model;
  std::string messages;
  TemplateArgument chat_template;
  bool no_generation_prompt = false;
  bool continues = false;
  bool json = false;
};

Json read_messages(const TemplateArguments& arguments, const VerbCall& call) {
  const bool from_input = arguments.messages == "-";
  const bool is_json = arguments.messages.starts_with("[") || arguments.messages.starts_with("{");
  const std::string text = from_input ? read_standard_input(call, "messages")
                           : is_json  ? arguments.messages
                                      : read_file(arguments.messages, kMaxMessageBytes);
  const auto bad = first_invalid_utf8(text);
  USER_CHECK(!bad, "[messages] must be UTF-8, but is not from byte {} on ({})", *bad, arguments.messages);
  Json messages = parse_json(text);
  USER_CHECK(messages.is_array() || messages.is_object(),
             "[messages] must be a JSON list of messages or an object of variables, but {} is not", arguments.messages);
  const bool has_none =
      messages.is_array() ? messages.empty() : !messages.contains("messages") || messages["messages"].empty();
  USER_CHECK(!has_none, "[messages] must have at least one message");
  return messages;
}

int render_template(const TemplateArguments& arguments, VerbCall& call) {
  const Json messages = read_messages(arguments, call);
  std::optional<Checkpoint> checkpoint;
  if (!arguments.model.name.empty()) checkpoint = Checkpoint::open(arguments.model.path(call));
  USER_CHECK(checkpoint || !arguments.chat_template.given.empty(), "[model] must be given, or --chat-template FILE");
  const Vocabulary vocabulary = checkpoint ? checkpoint->vocabulary() : Vocabulary();
  const bool begins_answer = !arguments.no_generation_prompt && !arguments.continues;
  const Json variables = chat_variables(vocabulary, messages, begins_answer, arguments.chat_template.arguments());
  const ChatTemplate chat_template(
      chosen_chat_template(checkpoint ? &*checkpoint : nullptr, arguments.chat_template.given, variables));
  const std::string text =
      arguments.continues ? render_unfinished(chat_template, variables) : chat_template.render(variables);
  if (arguments.json) {
    call.out << json_text(Json{{"text", text}}) << "\n";
  } else {
    call.out << text;
  }
  return 0;
}

}  // namespace
}  // namespace weft

VERB(template) {
  verbs.add(
      "template",
      {"Print a conversation as the model's chat template writes it.", [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<TemplateArguments>();
         arguments->model.declare(flags, ModelArgument::optional);
         flags.option("--messages", arguments->messages,
                      "A file of JSON: a list of messages or an object of variables; or the JSON itself. - reads "
                      "standard input.",
                      {.required = true});
         arguments->chat_template.declare(flags);
         flags.flag("--no-generation-prompt", arguments->no_generation_prompt, "Do not begin the assistant's answer.");
         flags.flag("--continue-final-message", arguments->continues,
                    "End with the content of the last message, so that the model goes on with it.");
         flags.flag("--json", arguments->json, "Print an object with the text.");
         return [arguments, &call] { return render_template(*arguments, call); };
       }});
}
