#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"

namespace weft {
namespace {

struct EmbedArguments {
  ModelArgument model;
  PromptArgument text;
  PoolingArgument pooling;
  std::int64_t dimensions = 0;
  bool is_raw = false;
  bool json = false;
};

int run_embed(const EmbedArguments& arguments, VerbCall& call) {
  const std::string text = arguments.text.read(call);
  const auto engine = open_engine(arguments.model.request(call), notes_to(call), &call.watch);
  const EmbeddingHead head = engine->embedding_head();
  USER_CHECK(!head.scores, "[{}] scores texts, and makes no embeddings: use /v1/rerank or /v1/score of weft serve",
             engine->runner().checkpoint().path());
  const std::optional<Pooling> asked = arguments.pooling.pooling(), pooling = asked ? asked : head.pooling;
  USER_CHECK(pooling, "[--pooling] must be last, mean or cls: {} states no pooling of hidden states",
             engine->runner().checkpoint().path());
  const std::vector<int> ids = engine->tokenizer().encode(text);
  std::optional<std::int64_t> dimensions;
  if (arguments.dimensions != 0) dimensions = in_range(arguments.dimensions, 1, head.width, "--dimensions");
  Json numbers = embedding_json(finished_embedding(head, engine->embed(ids, *pooling), dimensions, !arguments.is_raw));
  call.out << json_text(arguments.json ? Json{{"tokens", ids.size()}, {"embedding", std::move(numbers)}} : numbers)
           << "\n";
  return 0;
}

}  // namespace
}  // namespace weft

VERB(embed) {
  verbs.add("embed", {"Print the embedding of a text as a JSON list.", [](Flags& flags, VerbCall& call) -> VerbBody {
                        auto arguments = std::make_shared<EmbedArguments>();
                        arguments->model.declare_to_run(flags);
                        arguments->text.declare(flags);
                        arguments->pooling.declare(flags);
                        flags.option("--dimensions", arguments->dimensions,
                                     "Print the first numbers alone; 0: all of them.", {.shows_default = true});
                        flags.flag("--no-normalize", arguments->is_raw, "Do not divide by the length of the vector.");
                        flags.flag("--json", arguments->json, "Print an object with the embedding and the tokens.");
                        return [arguments, &call] { return run_embed(*arguments, call); };
                      }});
}
