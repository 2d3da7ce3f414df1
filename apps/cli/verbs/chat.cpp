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
  USER_CHECK(!bad, "[chat] a message must be UTF-8, but is not from byte {} on", *bad);
  return {{"role", role}, {"content", content}};
}

class Chat {
 public:
  Chat(const ChatArguments& arguments, VerbCall& call)
      : arguments_(arguments),
        call_(call),
        engine_(open_engine(call, arguments.model)),
        parameters_(arguments.sampling.resolve(engine_->runner().checkpoint(), engine_->context().log)),
        template_(chosen_chat_template(&engine_->runner().checkpoint(), arguments.chat_template, Json::object())) {
    if (!arguments.system.empty()) messages_.push_back(message("system", arguments.system));
  }

  // UserError where the line cannot be answered; the conversation is then as it was before.
  void answer(const std::string& line) {
    const Json before = messages_;
    try {
      add_answer(line);
    } catch (const UserError&) {
      messages_ = before;
      throw;
    }
  }

 private:
  void add_answer(const std::string& line) {
    messages_.push_back(message("user", line));
    const std::string prompt = template_.render(chat_variables(engine_->tokenizer().vocabulary(), messages_, true));
    // The template writes the special tokens itself.
    const std::vector<int> ids = engine_->tokenizer().encode(prompt, {.add_special = false});
    const auto show = [&](const std::string& text) {
      if (!arguments_.json) call_.out << text << std::flush;
    };
    const Engine::Generation answer = engine_->generate(ids, parameters_, show);
    messages_.push_back(message("assistant", answer.text));
    if (arguments_.json) {
      call_.out << json_text(Json{{"message", messages_.back()},
                                  {"finish_reason", answer.finished == FinishReason::stop ? "stop" : "length"},
                                  {"prompt_tokens", ids.size()},
                                  {"completion_tokens", answer.tokens.size()}});
    }
    call_.out << std::endl;
    if (arguments_.statistics) print_statistics(answer, ids.size(), engine_->runner(), call_.err);
  }

  const ChatArguments& arguments_;
  VerbCall& call_;
  std::unique_ptr<Engine> engine_;
  SamplingParameters parameters_;
  ChatTemplate template_;
  Json messages_ = Json::array();
};

int chat(const ChatArguments& arguments, VerbCall& call) {
  Chat conversation(arguments, call);
  const bool at_terminal = &call.in == &std::cin && isatty(STDIN_FILENO) != 0;
  int status = 0;
  for (;;) {
    if (at_terminal) call.err << "> " << std::flush;
    std::string line;
    if (!std::getline(call.in, line)) break;
    if (trim(line).empty()) continue;
    try {
      conversation.answer(line);
    } catch (const UserError& error) {
      // The line is at fault, and the next one may be answered.
      if (arguments.json) call.out << json_text(Json{{"error", error.what()}}) << std::endl;
      call.err << "weft: " << error.what() << std::endl;
      status = error.exit_code();
    }
  }
  if (at_terminal) call.err << "\n";
  return at_terminal ? 0 : status;  // a script learns that a line of it was not answered
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
