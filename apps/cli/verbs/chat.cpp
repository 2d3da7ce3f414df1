#include <iostream>

#include <unistd.h>

#include "apps/cli/output_argument.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/conversation.h"
#include "engine/open_model.h"

namespace weft {
namespace {

struct ChatArguments {
  ModelArgument model;
  SamplingArguments sampling;
  OutputArgument output;
  std::string system;
  TemplateArgument chat_template;
  bool statistics = false;
  bool json = false;
};

void answer(const ChatArguments& arguments, const std::string& line, Conversation& conversation,
            const ModelRunner& runner, VerbCall& call) {
  const Conversation::Answer answer = conversation.answer(line, [&](const std::string& text) {
    if (!arguments.json) call.out << text << std::flush;
  });
  if (arguments.json)
    call.out << json_text(Json{{"message", conversation.messages().back()},
                               {"finish_reason", reason_text(answer.generation.finished)},
                               {"prompt_tokens", answer.prompt_tokens},
                               {"completion_tokens", answer.generation.tokens.size()}});
  call.out << std::endl;
  if (arguments.statistics) print_statistics(answer.generation, answer.prompt_tokens, runner, call.err);
}

int run_chat(const ChatArguments& arguments, VerbCall& call) {
  const auto engine = open_engine(arguments.model.request(call), notes_to(call), &call.watch);
  const Checkpoint& checkpoint = engine->runner().checkpoint();
  const Json template_arguments = arguments.chat_template.arguments();
  SamplingParameters parameters = sampling_parameters(arguments.sampling.request(), checkpoint, engine->context().log);
  parameters.constraint = arguments.output.constraint(*engine);
  Conversation conversation(*engine, std::move(parameters),
                            chosen_chat_template(&checkpoint, arguments.chat_template.given, template_arguments),
                            template_arguments);
  if (!arguments.system.empty()) conversation.add("system", arguments.system);
  const bool at_terminal = &call.in == &std::cin && isatty(STDIN_FILENO) != 0;
  int status = 0;
  for (;;) {
    if (at_terminal) call.err << "> " << std::flush;
    std::string line;
    if (!std::getline(call.in, line)) break;
    if (trim(line).empty()) continue;
    try {
      answer(arguments, line, conversation, engine->runner(), call);
    } catch (const UserError& error) {
      // The line is at fault, and the next one may be answered.
      if (arguments.json) call.out << json_text(Json{{"error", error.what()}}) << std::endl;
      call.err << "weft: " << error.what() << std::endl;
      status = error.exit_code();
    }
  }
  check_input_was_read(call);
  if (at_terminal) call.err << "\n";
  return at_terminal ? 0 : status;  // a script learns that a line of it was not answered
}

}  // namespace
}  // namespace weft

VERB(chat) {
  verbs.add(
      "chat",
      {"Talk to a model; each line of standard input is a message.", [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<ChatArguments>();
         arguments->model.declare_to_run(flags);
         arguments->sampling.declare(flags);
         arguments->output.declare(flags);
         flags.option("--system", arguments->system, "What the conversation begins with.", {.may_be_empty = true});
         arguments->chat_template.declare(flags);
         flags.flag("--stats", arguments->statistics, "Print rates, memory, captures after each answer.");
         flags.flag("--json", arguments->json, "Print one JSON object for each answer.");
         return [arguments, &call] { return run_chat(*arguments, call); };
       }});
}
