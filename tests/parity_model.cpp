// Logits, greedy texts and perplexity of the model.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include <fmt/core.h>

#include "apps/cli/session.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "engine/sampling/logprobs.h"
#include "options/effective_options.h"
#include "tests/parity.h"

namespace weft::parity {
namespace {

// Float32 engines stay within 1.1e-4 of one another; 1e-3 is the limit set for a logit.
constexpr double kLogitTolerance = 1e-3;
constexpr double kExactMargin = 0.003;  // the smallest margin of the public set
constexpr double kFastMargin = 0.5;
constexpr double kFastShare = 0.95;
// The reference's own distance from float64 is 3e-7 in the mean.
constexpr double kExactNll = 1e-4;
constexpr double kFastPerplexity = 0.01;

std::unique_ptr<Engine> open(const Subject& subject, const char* precision) {
  Options options;
  set_option(options, "activation-precision", precision, "check_parity");
  return std::make_unique<Engine>(make_context(effective_options(options).options), subject.checkpoint,
                                  make_model_registry());
}

int top_of(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

struct Agreement {
  int positions = 0;
  int equal = 0;
};

// Feeds the reference's own tokens and compares the logits at each of its steps.
void check_forward_case(Family& family, Engine& engine, const Json& one, bool exact, Agreement& agreement) {
  const std::string name = one.at("name");
  std::vector<int> ids = ids_of(one.at("ids"));
  const std::vector<int> greedy = ids_of(one.at("greedy_ids"));
  const auto first = static_cast<int>(ids.size()) - 1;
  ids.insert(ids.end(), greedy.begin(), greedy.end() - 1);
  std::vector<int> rows(greedy.size());
  std::iota(rows.begin(), rows.end(), first);
  std::map<int, const Json*> stored;
  for (const Json& position : one.at("positions")) stored[position.at("position")] = &position;
  double worst = 0;
  engine.score(ids, rows, [&](int row, std::span<const float> logits) {
    const auto step = static_cast<std::size_t>(row - first);
    const double margin = one.at("margins").at(step);
    const bool equal = top_of(logits) == greedy[step];
    ++agreement.positions;
    agreement.equal += equal ? 1 : 0;
    if (margin > (exact ? kExactMargin : kFastMargin))
      family.check(fmt::format("{} step {} (top 1)", name, step), equal,
                   fmt::format("margin {}, wanted {}, but came {}", margin, greedy[step], top_of(logits)));
    if (!exact || !stored.contains(row)) return;
    const Json& position = *stored.at(row);
    double distance = std::abs(log_sum_exp(logits) - position.at("log_sum_exp").get<double>());
    for (const Json& pair : position.at("top"))
      distance = std::max(distance, std::abs(logits[pair.at(0).get<std::size_t>()] - pair.at(1).get<double>()));
    worst = std::max(worst, distance);
    family.check(fmt::format("{} position {} (logits)", name, row), distance <= kLogitTolerance,
                 fmt::format("a logit is {:.2e} away", distance));
  });
  if (!exact) return;
  family.note(fmt::format("{}: logits within {:.2e}", name, worst));
  const SamplingParameters parameters{.max_tokens = static_cast<std::int64_t>(greedy.size()), .ignore_end = true};
  const Engine::Generation generation = engine.generate(ids_of(one.at("ids")), parameters);
  // A step whose margin is below twice the tolerance may flip; later steps are not compared.
  std::size_t solid = 0;
  while (solid < greedy.size() && one.at("margins").at(solid).get<double>() >= 2 * kLogitTolerance) ++solid;
  const auto cut = [&](const std::vector<int>& tokens) {
    return std::vector<int>(tokens.begin(),
                            tokens.begin() + static_cast<std::ptrdiff_t>(std::min(solid, tokens.size())));
  };
  family.expect_ids(name + " (greedy)", cut(generation.tokens), cut(greedy));
}

}  // namespace

void check_forward(Family& family, const Subject& subject, bool exact) {
  const auto engine = open(subject, exact ? "exact" : "fast");
  Agreement agreement;
  for (const Json& one : read_cases(subject, "forward.json"))
    family.run(one.at("name"), [&] { check_forward_case(family, *engine, one, exact, agreement); });
  const std::string counts = fmt::format("top 1 equal at {} of {}", agreement.equal, agreement.positions);
  family.note(counts);
  if (!exact) family.check("share of equal top 1", agreement.equal >= kFastShare * agreement.positions, counts);
}

void check_perplexity(Family& family, const Subject& subject, bool exact) {
  const auto engine = open(subject, exact ? "exact" : "fast");
  for (const Json& one : read_cases(subject, "perplexity.json")) {
    const std::vector<int> ids = ids_of(one.at("ids"));
    std::vector<int> rows(ids.size() - 1);
    std::iota(rows.begin(), rows.end(), 0);
    double sum = 0, worst = 0;
    engine->score(ids, rows, [&](int row, std::span<const float> logits) {
      const auto at = static_cast<std::size_t>(row);
      const double nll = log_sum_exp(logits) - logits[static_cast<std::size_t>(ids[at + 1])];
      worst = std::max(worst, std::abs(nll - one.at("nll").at(at).get<double>()));
      sum += nll;
    });
    const double mean = sum / static_cast<double>(rows.size()), perplexity = std::exp(mean);
    const double wanted = one.at("float32").at("perplexity"), wanted_mean = one.at("float32").at("mean_nll");
    const std::string came = fmt::format("perplexity {:.4f}, the reference has {:.4f}", perplexity, wanted);
    family.note(fmt::format("{}: {}, a token at most {:.2e} away", exact ? "exact" : "fast", came, worst));
    if (exact) {
      family.check("exact mean", std::abs(mean - wanted_mean) <= kExactNll, came);
      family.check("exact tokens", worst <= 2 * kLogitTolerance, fmt::format("a token is {:.2e} away", worst));
    } else {
      family.check("fast", std::abs(perplexity / wanted - 1) <= kFastPerplexity, came);
    }
  }
}

}  // namespace weft::parity
