
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "io/checkpoint.h"
#include "io/tokenizer.h"

namespace weft {
namespace {

constexpr std::size_t kMaxListBytes = 64u << 20;

struct DetokenizeArguments {
  ModelArgument model;
  std::vector<std::string> ids;  // one at most
  std::string file;
  bool plain = false;
  bool skip_special = false;
  bool json = false;
};

std::string read_list(const DetokenizeArguments& arguments, const VerbCall& call) {
  if (!arguments.file.empty()) return read_file(arguments.file, kMaxListBytes);
  const std::vector<std::string>& ids = arguments.ids;
  if (ids.empty()) return read_standard_input(call, "ids");
  USER_CHECK(ids.size() == 1, "[--ids] wanted one list, but {} and {} are given", quote(ids[0]), quote(ids[1]));
  return ids[0] == "-" ? read_standard_input(call, "ids") : ids[0];
}

int run_detokenize(const DetokenizeArguments& arguments, VerbCall& call) {
  const std::vector<int> ids = parse_token_ids(read_list(arguments, call), "ids");
  const Tokenizer tokenizer(Checkpoint::open(arguments.model.path(call)).vocabulary());
  const std::string text = tokenizer.decode(ids, {.skip_special = arguments.skip_special});
  if (arguments.json) {
    call.out << json_text(Json{{"text", text}}) << "\n";
  } else {
    call.out << text;
  }
  return 0;
}

}  // namespace
}  // namespace weft

VERB(detokenize) {
  verbs.add("detokenize",
            {"Print the exact text of a JSON list of token ids.", [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<DetokenizeArguments>();
               arguments->model.declare(flags);
               flags.option("ids,--ids", arguments->ids, "The list; - or nothing reads standard input.");
               flags.option("-f,--file", arguments->file, "Read the list from a file.", {.excludes = {"--ids"}});
               flags.flag("--no-special", arguments->plain, "Special tokens as plain text (the default).");
               flags.flag("--skip-special", arguments->skip_special, "Leave special tokens out.",
                          {.excludes = {"--no-special"}});
               flags.flag("--json", arguments->json, "Print an object with the text.");
               return [arguments, &call] { return run_detokenize(*arguments, call); };
             }});
}
