#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/sampling/logprobs.h"

namespace weft {
namespace {

struct LogitsArguments {
  ModelArgument model;
  PromptArgument prompt;
  std::string ids;
  std::string positions = "last";
  std::int64_t top_k = 20;
  bool perplexity = false;
  bool json = false;
};

std::vector<int> chosen_positions(const std::string& text, std::size_t count) {
  std::vector<int> positions;
  if (text == "last") return {static_cast<int>(count) - 1};
  if (text == "all") {
    positions.resize(count);
    std::iota(positions.begin(), positions.end(), 0);
    return positions;
  }
  for (const std::string& word : split_text(text, ',')) {
    std::size_t position = 0;
    const char* const end = word.data() + word.size();
    const auto [read, error] = std::from_chars(word.data(), end, position);
    USER_CHECK(error == std::errc() && read == end && position < count,
               "[--positions] must be last, all or positions in [0, {}), but holds {}", count, quote(word));
    positions.push_back(static_cast<int>(position));
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

// JSON has no infinities.
Json number_json(double value) {
  if (!std::isinf(value)) return value;
  return value > 0 ? "inf" : "-inf";
}

// The largest logits first; of equal ones the lower id.
Json top_logits(std::span<const float> logits, std::size_t count) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  count = std::min(count, ids.size());
  const auto logit = [&](int id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](int a, int b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  Json top = Json::array();
  for (std::size_t i = 0; i < count; ++i) top.push_back({ids[i], number_json(logit(ids[i]))});
  return top;
}

int print_perplexity(Engine& engine, const std::vector<int>& ids, VerbCall& call) {
  USER_CHECK(ids.size() >= 2, "[perplexity] needs a text of at least two tokens, but it has {}", ids.size());
  const auto context = static_cast<std::size_t>(engine.max_model_len());
  if (ids.size() > context)
    call.err << fmt::format(
        "weft: the text of {} tokens is longer than the context of {}: its parts are scored by "
        "themselves, but for their first tokens\n",
        ids.size(), context);
  double sum = 0;
  std::size_t scored = 0;
  for (std::size_t at = 0; at + 1 < ids.size(); at += context) {
    const std::vector<int> part(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                ids.begin() + static_cast<std::ptrdiff_t>(std::min(at + context, ids.size())));
    std::vector<int> rows(part.size() - 1);
    std::iota(rows.begin(), rows.end(), 0);
    engine.score(part, rows, [&](int row, std::span<const float> logits) {
      sum += negative_log_likelihood(logits, static_cast<std::size_t>(part[static_cast<std::size_t>(row) + 1]));
    });
    scored += rows.size();
  }
  const double mean = sum / static_cast<double>(scored);
  USER_CHECK(!std::isnan(mean), "[perplexity] is not a number: a position has infinite logits alone");
  call.out << json_text(Json{
                  {"tokens", scored}, {"mean_nll", number_json(mean)}, {"perplexity", number_json(std::exp(mean))}})
           << "\n";
  return 0;
}

int print_logits(const LogitsArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.top_k >= 0, "[--top-k] must be at least 0, but is {}", arguments.top_k);
  std::vector<int> ids;
  std::string prompt;
  if (arguments.ids.empty()) {
    prompt = arguments.prompt.read(call);
  } else {
    ids = parse_token_ids(arguments.ids, "--ids");
  }
  const auto engine = open_engine(arguments.model.request(call), notes_to(call), &call.watch);
  if (arguments.ids.empty()) ids = engine->tokenizer().encode(prompt);
  USER_CHECK(!ids.empty(), "[logits] there is no token to look at");
  if (arguments.perplexity) return print_perplexity(*engine, ids, call);
  engine->score(ids, chosen_positions(arguments.positions, ids.size()), [&](int row, std::span<const float> logits) {
    call.out << json_text(Json{{"position", row},
                               {"top", top_logits(logits, static_cast<std::size_t>(arguments.top_k))},
                               {"log_sum_exp", number_json(log_sum_exp(logits))}})
             << "\n";
  });
  return 0;
}

}  // namespace
}  // namespace weft

VERB(logits) {
  verbs.add("logits", {"Print the logits of a forward pass, one JSON line for each position.",
                       [](Flags& flags, VerbCall& call) -> VerbBody {
                         auto arguments = std::make_shared<LogitsArguments>();
                         arguments->model.declare_to_run(flags);
                         arguments->prompt.declare(flags);
                         flags.option("--ids", arguments->ids, "A JSON list of token ids instead of a prompt.",
                                      {.excludes = {"--prompt", "--file"}});
                         flags.option("--positions", arguments->positions, "last, all, or positions as in 3,7.",
                                      {.shows_default = true});
                         flags.option("--top-k", arguments->top_k, "How many logits to print.",
                                      {.shows_default = true});
                         flags.flag("--perplexity", arguments->perplexity, "Print the perplexity of the text instead.",
                                    {.excludes = {"--positions", "--top-k"}});
                         flags.flag("--json", arguments->json, "Lines are JSON with and without it.");
                         return [arguments, &call] { return print_logits(*arguments, call); };
                       }});
}
