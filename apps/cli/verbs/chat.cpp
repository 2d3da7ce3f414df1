#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/cli/output_argument.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "engine/conversation.h"
#include "engine/open_model.h"

namespace weft {
namespace {

constexpr std::size_t kMostSystemBytes = 1 << 20;

struct ChatArguments {
  ModelArgument model;
  SamplingArguments sampling;
  OutputArgument output;
  std::string system, system_file;
  PromptArgument prompt;  // the first message
  bool goes_on = false;   // after the answer to it
  bool is_single_turn = false;
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
  if (answer.generation.finished == FinishReason::length)
    call.err << fmt::format("weft: the answer was cut at {} tokens (-n)\n", answer.generation.tokens.size());
  if (arguments.statistics) print_statistics(answer.generation, answer.prompt_tokens, runner, call.err);
}

// Answers a message, and returns the exit status. The message is at fault for an error, and the next one may be
// answered.
int take_message(const ChatArguments& arguments, const std::string& text, Conversation& conversation,
                 const ModelRunner& runner, VerbCall& call) {
  try {
    answer(arguments, text, conversation, runner, call);
    return 0;
  } catch (const UserError& error) {
    if (arguments.json) call.out << json_text(Json{{"error", error.what()}}) << std::endl;
    call.err << "weft: " << error.what() << std::endl;
    return error.exit_code();
  }
}

int run_chat(const ChatArguments& arguments, VerbCall& call) {
  const auto engine = open_engine(arguments.model.request(call), notes_to(call), &call.watch);
  const Checkpoint& checkpoint = engine->runner().checkpoint();
  const Json template_arguments = arguments.chat_template.arguments();
  SamplingParameters parameters = arguments.sampling.parameters(*engine, call);
  parameters.constraint = arguments.output.constraint(*engine);
  Conversation conversation(*engine, std::move(parameters),
                            chosen_chat_template(&checkpoint, arguments.chat_template.given, template_arguments),
                            template_arguments);
  const std::string system =
      arguments.system_file.empty() ? arguments.system : read_file(arguments.system_file, kMostSystemBytes);
  const auto begin = [&] {
    conversation.clear();
    if (!system.empty()) conversation.add("system", system);
  };
  begin();
  const bool at_terminal = &call.in == &std::cin && isatty(STDIN_FILENO) != 0;
  const auto take = [&](const std::string& text) {
    return take_message(arguments, text, conversation, engine->runner(), call);
  };
  const bool has_prompt = arguments.prompt.is_given();
  int status = has_prompt ? take(arguments.prompt.read(call)) : 0;
  if (has_prompt && !arguments.goes_on) return status;
  if (at_terminal) call.err << "weft: /clear begins a new conversation, /exit or Ctrl-D ends\n";
  for (std::string line;;) {
    if (at_terminal) call.err << "> " << std::flush;
    if (!std::getline(call.in, line) || (at_terminal && trim(line) == "/exit")) break;
    if (trim(line).empty()) continue;
    if (at_terminal && trim(line) == "/clear") {
      begin();
      continue;
    }
    status = std::max(status, take(line));
    if (arguments.is_single_turn) break;
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
      {"Talk to a model: -p TEXT is one message, else each line of standard input is one.",
       [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<ChatArguments>();
         arguments->model.declare_to_run(flags);
         arguments->sampling.declare(flags);
         arguments->output.declare(flags);
         arguments->prompt.declare(flags);
         flags.flag("--conversation", arguments->goes_on, "Go on with standard input after the answer to --prompt.");
         flags.flag("--single-turn", arguments->is_single_turn, "End after one answer.");
         flags.option("--system", arguments->system, "What the conversation begins with.", {.may_be_empty = true});
         flags.option("--system-file", arguments->system_file, "The same, from a file.", {.excludes = {"--system"}});
         arguments->chat_template.declare(flags);
         flags.flag("--stats", arguments->statistics, "Print rates, memory, captures after each answer.");
         flags.flag("--json", arguments->json, "Print one JSON object for each answer.");
         return [arguments, &call] { return run_chat(*arguments, call); };
       }});
}
