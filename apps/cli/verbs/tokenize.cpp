
#include "apps/cli/session.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "io/tokenizer.h"

namespace weft {
namespace {

struct TokenizeArguments {
  ModelArgument model;
  PromptArgument text;
  bool plain = false;
  bool json = false;
};

int run_tokenize(const TokenizeArguments& arguments, VerbCall& call) {
  const std::string text = arguments.text.read(call);
  const Tokenizer tokenizer(Checkpoint::open(arguments.model.path(call)).vocabulary());
  print_notes(tokenizer.vocabulary().warnings, call.err);
  const std::vector<int> ids = tokenizer.encode(text, {.parse_special = !arguments.plain});
  Json list = ids;
  call.out << json_text(arguments.json ? Json{{"count", ids.size()}, {"tokens", std::move(list)}} : list) << "\n";
  return 0;
}

}  // namespace
}  // namespace weft

VERB(tokenize) {
  verbs.add("tokenize", {"Print the token ids of a text as a JSON list.", [](Flags& flags, VerbCall& call) -> VerbBody {
                           auto arguments = std::make_shared<TokenizeArguments>();
                           arguments->model.declare(flags);
                           arguments->text.declare(flags);
                           flags.flag("--no-special", arguments->plain, "Read special tokens as plain text.");
                           flags.flag("--json", arguments->json, "Print an object with the ids and their count.");
                           return [arguments, &call] { return run_tokenize(*arguments, call); };
                         }});
}
