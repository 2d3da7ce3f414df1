#include <iostream>

#include <unistd.h>

#include "apps/cli/conversation.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/chat_template.h"

namespace weft {
namespace {

struct ChatArguments {
  ModelArgument model;
  SamplingArguments sampling;
  std::string system;
  std::string chat_template;
  bool statistics = false;
  bool json = false;
};

Json message(const char* role, const std::string& content) {
  const auto bad = first_invalid_utf8(content);
  USER_CHECK(!bad, "[chat] what is said must be UTF-8, but is not from byte {} on", *bad);
  return {{"role", role}, {"content", content}};
}

int chat(const ChatArguments& arguments, VerbCall& call) {
  const auto engine = open_engine(call, arguments.model);
  const Checkpoint& checkpoint = engine->runner().checkpoint();
  const SamplingParameters parameters = arguments.sampling.resolve(checkpoint, engine->context().log);
  const ChatTemplate chat_template(chosen_chat_template(&checkpoint, arguments.chat_template, Json::object()));
  Json messages = Json::array();
  if (!arguments.system.empty()) messages.push_back(message("system", arguments.system));
  const bool at_terminal = &call.in == &std::cin && isatty(STDIN_FILENO) != 0;
  const auto show = [&](const std::string& text) {
    if (!arguments.json) call.out << text << std::flush;
  };
  for (;;) {
    if (at_terminal) call.err << "> " << std::flush;
    std::string line;
    if (!std::getline(call.in, line)) break;
    if (trim(line).empty()) continue;
    messages.push_back(message("user", line));
    const std::string prompt = chat_template.render(chat_variables(engine->tokenizer().vocabulary(), messages, true));
    // The template writes the special tokens itself.
    const std::vector<int> ids = engine->tokenizer().encode(prompt, {.add_special = false});
    const Engine::Generation answer = engine->generate(ids, parameters, show);
    messages.push_back(message("assistant", answer.text));
    if (arguments.json) {
      call.out << json_text(Json{{"message", messages.back()},
                                 {"finish_reason", answer.finished == FinishReason::stop ? "stop" : "length"},
                                 {"prompt_tokens", ids.size()},
                                 {"completion_tokens", answer.tokens.size()}});
    }
    call.out << std::endl;
    if (arguments.statistics) print_statistics(answer, ids.size(), engine->runner(), call.err);
  }
  if (at_terminal) call.err << "\n";
  return 0;
}

}  // namespace
}  // namespace weft

VERB(chat) {
  verbs.add("chat", {"Talk to a model; each line of standard input is a message.",
                     [](Flags& flags, VerbCall& call) -> VerbBody {
                       auto arguments = std::make_shared<ChatArguments>();
                       arguments->model.declare_to_run(flags);
                       arguments->sampling.declare(flags);
                       flags.option("--system", arguments->system, "What the conversation begins with.");
                       declare_chat_template(flags, arguments->chat_template);
                       flags.flag("--stats", arguments->statistics, "Print rates, memory, captures after each answer.");
                       flags.flag("--json", arguments->json, "Print one JSON object for each answer.");
                       return [arguments, &call] { return chat(*arguments, call); };
                     }});
}
