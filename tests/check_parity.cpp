// check_parity DIR MODEL: what other engines gave for one real checkpoint, held against this program. DIR is a folder
// in the form of tests/data/parity: strings.json, detokenize.json, chat.json, template_cases.json, forward.json,
// perplexity.json, sampling.json with sampling.safetensors. One line for each family, `N passed, N failed`, with what
// failed named before it; exit 1 on a failure. A family whose file is not there is said to be missing, and fails.
//
// --family F runs one family; --skip-slow leaves out those that run the model.

#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "apps/cli/conversation.h"
#include "apps/cli/flags.h"
#include "apps/cli/session.h"
#include "apps/cli/tensor_file.h"
#include "base/effective_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "io/chat_template.h"
#include "io/detokenizer.h"
#include "io/tokenizer.h"
#include "tensor/convert.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxFileBytes = 64u << 20;

// Float32 engines stay within 1.1e-4 of one another; 1e-3 is the limit set for a logit.
constexpr double kLogitTolerance = 1e-3;
constexpr double kExactMargin = 0.003;  // the smallest margin of the public set
constexpr double kFastMargin = 0.5;
constexpr double kFastShare = 0.95;
// The reference's own distance from float64 is 3e-7 in the mean.
constexpr double kExactNll = 1e-4;
constexpr double kFastPerplexity = 0.01;
// The stored probabilities have eight digits, and vLLM's are within 1e-7 of the same rules in float64.
constexpr double kProbability = 2e-6;
constexpr double kNearCut = 1e-6;  // a threshold this near may keep one token more or less

class Family {
 public:
  explicit Family(std::string name) : name_(std::move(name)) {}

  void check(const std::string& what, bool passed, const std::string& detail = "") {
    ++(passed ? passed_ : failed_);
    if (!passed) std::cout << name_ << " failed: " << what << (detail.empty() ? "" : ": " + detail) << "\n";
  }
  // Runs one case; an exception is its failure.
  void run(const std::string& what, const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception& error) {
      check(what, false, error.what());
    }
  }
  void note(const std::string& text) const { std::cout << name_ << ": " << text << "\n"; }
  // Whether all passed.
  bool finish() const {
    std::cout << name_ << ": " << passed_ << " passed, " << failed_ << " failed" << std::endl;
    return failed_ == 0 && passed_ > 0;
  }

 private:
  std::string name_;
  int passed_ = 0;
  int failed_ = 0;
};

Json read_json(const std::string& path) { return Json::parse(read_file(path, kMaxFileBytes)); }

std::vector<Json> cases_of(const std::string& path) { return read_json(path).at("cases").get<std::vector<Json>>(); }

std::vector<int> ids_of(const Json& list) { return list.get<std::vector<int>>(); }

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string ids_text(const std::vector<int>& ids) { return Json(ids).dump(); }

void expect_ids(Family& family, const std::string& name, const std::vector<int>& came, const std::vector<int>& wanted) {
  family.check(name, came == wanted, fmt::format("wanted {}, but came {}", ids_text(wanted), ids_text(came)));
}

void expect_text(Family& family, const std::string& name, const std::string& came, const std::string& wanted) {
  const auto shown = [](const std::string& text) {
    return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  family.check(name, came == wanted, fmt::format("wanted {}, but came {}", shown(wanted), shown(came)));
}

// What every family looks at.
struct Subject {
  std::string folder;
  Checkpoint checkpoint;
  Tokenizer tokenizer;
};

void check_tokenizer(Family& family, const Subject& subject) {
  for (const Json& one : cases_of(subject.folder + "/strings.json")) {
    const std::string name = one.at("name"), text = one.at("text");
    family.run(name, [&] {
      expect_ids(family, name, subject.tokenizer.encode(text, {.add_special = false}), ids_of(one.at("ids")));
      const Json& plain = one.contains("ids_plain") ? one.at("ids_plain") : one.at("ids");
      expect_ids(family, name + " (plain)",
                 subject.tokenizer.encode(text, {.parse_special = false, .add_special = false}), ids_of(plain));
    });
  }
}

void check_detokenizer(Family& family, const Subject& subject) {
  for (const Json& one : cases_of(subject.folder + "/detokenize.json")) {
    const std::string name = one.at("name"), text = one.at("text");
    family.run(name, [&] {
      const std::vector<int> ids = ids_of(one.at("ids"));
      expect_text(family, name, subject.tokenizer.decode(ids), text);
      expect_text(family, name + " (skip special)", subject.tokenizer.decode(ids, {.skip_special = true}),
                  one.value("text_skip_special", text));
      for (std::size_t i = 0; i < ids.size(); ++i)
        expect_text(family, fmt::format("{} (piece {})", name, i), std::string(subject.tokenizer.token_bytes(ids[i])),
                    from_hex(one.at("pieces_hex").at(i)));
      // Where the stream is cut is ours to choose, but for this: never inside a character, nothing lost.
      StreamingDetokenizer stream(subject.tokenizer);
      std::string streamed;
      for (int id : ids) {
        const std::string part = stream.push(id);
        family.check(name + " (stream cuts a character)", !first_invalid_utf8(part));
        streamed += part;
      }
      expect_text(family, name + " (stream)", streamed + stream.finish(), text);
    });
  }
}

void check_chat(Family& family, const Subject& subject) {
  const ChatTemplate chat_template(required_chat_template(subject.checkpoint));
  for (const Json& one : cases_of(subject.folder + "/chat.json")) {
    const std::string name = one.at("name");
    family.run(name, [&] {
      const Json variables =
          chat_variables(subject.tokenizer.vocabulary(), one.at("messages"), one.at("add_generation_prompt"));
      const std::string text = chat_template.render(variables);
      expect_text(family, name, text, one.at("text"));
      expect_ids(family, name + " (ids)", subject.tokenizer.encode(text, {.add_special = false}),
                 ids_of(one.at("ids")));
    });
  }
}

void check_templates(Family& family, const Subject& subject) {
  const Json file = read_json(subject.folder + "/template_cases.json");
  for (const Json& one : file.at("cases")) {
    const std::string name = one.at("name");
    std::optional<std::string> text, error;
    try {
      text = ChatTemplate(one.at("template").get<std::string>())
                 .render(one.contains("context") ? one.at("context") : file.at("context"));
    } catch (const UserError& refusal) {
      error = refusal.what();
    }
    if (one.contains("error")) {
      family.check(name, error.has_value(), "wanted a refusal, but came " + text.value_or(""));
    } else if (error) {
      family.check(name, false, *error);
    } else {
      expect_text(family, name, *text, one.at("text"));
    }
  }
}

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

// Feeds the reference's own tokens and compares what comes next at each of its steps.
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
  // A step whose margin is below twice the tolerance may flip; what follows it says nothing.
  std::size_t solid = 0;
  while (solid < greedy.size() && one.at("margins").at(solid).get<double>() >= 2 * kLogitTolerance) ++solid;
  const auto cut = [&](const std::vector<int>& tokens) {
    return std::vector<int>(tokens.begin(),
                            tokens.begin() + static_cast<std::ptrdiff_t>(std::min(solid, tokens.size())));
  };
  expect_ids(family, name + " (greedy)", cut(generation.tokens), cut(greedy));
}

void check_forward(Family& family, const Subject& subject, bool exact) {
  const auto engine = open(subject, exact ? "exact" : "fast");
  Agreement agreement;
  for (const Json& one : cases_of(subject.folder + "/forward.json"))
    family.run(one.at("name"), [&] { check_forward_case(family, *engine, one, exact, agreement); });
  const std::string counts = fmt::format("top 1 equal at {} of {}", agreement.equal, agreement.positions);
  family.note(counts);
  if (!exact) family.check("share of equal top 1", agreement.equal >= kFastShare * agreement.positions, counts);
}

void check_perplexity_in(Family& family, const Subject& subject, bool exact) {
  const auto engine = open(subject, exact ? "exact" : "fast");
  for (const Json& one : cases_of(subject.folder + "/perplexity.json")) {
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

struct SamplingRow {
  std::vector<float> logits;
  std::vector<int> prompt, output;
};

SamplingParameters sampling_parameters(const Json& given) {
  SamplingParameters parameters;
  for (const auto& [name, value] : given.items()) {
    if (name == "temperature")
      parameters.temperature = value;
    else if (name == "top_k")
      parameters.top_k = value;
    else if (name == "top_p")
      parameters.top_p = value;
    else if (name == "min_p")
      parameters.min_p = value;
    else if (name == "repetition_penalty")
      parameters.repetition_penalty = value;
    else if (name == "frequency_penalty")
      parameters.frequency_penalty = value;
    else if (name == "presence_penalty")
      parameters.presence_penalty = value;
    else
      fail_user("[sampling.json] {} is not a parameter", name);
  }
  return parameters;
}

bool is_near_cut(const Json& one) {
  for (const auto& [filter, distance] : one.at("cut_distance").items())
    if (distance.is_number() && distance.get<double>() > 0 && distance.get<double>() < kNearCut) return true;
  return false;
}

double entropy(const Distribution& distribution) {
  double sum = 0;
  for (double p : distribution.probabilities)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

void check_distribution(Family& family, const std::string& name, const Json& one, const Distribution& came,
                        const TensorFile& tensors) {
  const auto slack = static_cast<std::int64_t>(is_near_cut(one) ? 1 : 0);
  std::int64_t kept = 0;
  for (double p : came.probabilities) kept += p > 0 ? 1 : 0;
  const std::int64_t wanted_kept = one.at("kept");
  // A kept token's probability may be too small for a float32; those of the whole vocabulary are not counted.
  const bool filtered = tensors.find(name + ".kept").has_value() || one.at("top").size() == one.at("kept");
  if (filtered)
    family.check(name + " (kept)", std::abs(kept - wanted_kept) <= slack,
                 fmt::format("wanted {}, but came {}", wanted_kept, kept));
  family.check(name + " (entropy)", std::abs(entropy(came) - one.at("entropy").get<double>()) <= 1e-4,
               fmt::format("wanted {}, but came {}", one.at("entropy").dump(), entropy(came)));
  std::map<int, double> by_id;
  for (std::size_t i = 0; i < came.ids.size(); ++i) by_id[came.ids[i]] = came.probabilities[i];
  const auto expect = [&](int id, double wanted) {
    const double probability = by_id.contains(id) ? by_id[id] : 0;
    return std::abs(probability - wanted) <= kProbability * std::max(1.0, slack * 1e3);
  };
  int wrong = 0;
  for (const Json& pair : one.at("top")) wrong += expect(pair.at(0), pair.at(1)) ? 0 : 1;
  const std::optional<Tensor> ids = tensors.find(name + ".kept"), probabilities = tensors.find(name + ".probs");
  if (ids && probabilities) {
    for (std::int64_t i = 0; i < ids->meta.shape[0].number(); ++i) {
      const int id = static_cast<int>(load_integer(ids->meta.dtype, ids->data(), i));
      wrong += expect(id, load_double(probabilities->meta.dtype, probabilities->data(), i)) ? 0 : 1;
      if (slack == 0 && !by_id.contains(id)) ++wrong;
    }
  }
  family.check(name + " (probabilities)", wrong == 0, fmt::format("{} differ", wrong));
}

void check_sampling(Family& family, const Subject& subject) {
  const Json file = read_json(subject.folder + "/sampling.json");
  const TensorFile tensors(subject.folder + "/sampling.safetensors");
  std::map<std::string, SamplingRow> rows;
  for (const auto& [name, row] : file.at("rows").items()) {
    SamplingRow& read = rows[name];
    read.prompt = ids_of(row.at("prompt_ids"));
    read.output = ids_of(row.at("output_ids"));
    if (row.contains("tensor")) {
      const std::optional<Tensor> tensor = tensors.find(row.at("tensor"));
      USER_CHECK(tensor && tensor->meta.dtype == DType::f32, "[sampling.safetensors] must hold f32 logits");
      const std::int64_t count = element_count(tensor->meta.shape).number();
      read.logits.assign(tensor->as<float>(), tensor->as<float>() + count);
    } else {
      for (const Json& logit : row.at("logits"))
        read.logits.push_back(logit.is_null() ? -std::numeric_limits<float>::infinity() : logit.get<float>());
    }
  }
  for (const Json& one : file.at("cases")) {
    const std::string name = one.at("name");
    family.run(name, [&] {
      const SamplingRow& row = rows.at(name.substr(0, name.find('.')));
      const SamplingParameters parameters = sampling_parameters(one.at("params"));
      if (one.contains("greedy")) {
        const int token = sample(row.logits, parameters, row.prompt, row.output);
        family.check(name, token == one.at("greedy"),
                     fmt::format("wanted {}, but came {}", one.at("greedy").dump(), token));
      } else {
        check_distribution(family, name, one, distribution(row.logits, parameters, row.prompt, row.output), tensors);
      }
    });
  }
}

struct FamilyRow {
  const char* name;
  bool slow;
  void (*run)(Family&, const Subject&);
};

constexpr FamilyRow kFamilies[] = {
    {"tokenizer", false, check_tokenizer},
    {"detokenizer", false, check_detokenizer},
    {"chat", false, check_chat},
    {"templates", false, check_templates},
    {"sampling", false, check_sampling},
    {"forward.exact", true, [](Family& f, const Subject& s) { check_forward(f, s, true); }},
    {"forward.fast", true, [](Family& f, const Subject& s) { check_forward(f, s, false); }},
    {"perplexity.exact", true, [](Family& f, const Subject& s) { check_perplexity_in(f, s, true); }},
    {"perplexity.fast", true, [](Family& f, const Subject& s) { check_perplexity_in(f, s, false); }},
};

int check_parity(int argc, char** argv) {
  Flags flags("check_parity", "Holds this program against what other engines gave for one checkpoint.");
  std::string folder, model;
  std::vector<std::string> families;
  bool skip_slow = false;
  flags.option("folder", folder, "A folder in the form of tests/data/parity.", {.required = true});
  flags.option("model", model, "The checkpoint, or a built-in name.", {.required = true});
  flags.option("--family", families, "Only this one: tokenizer, forward.fast, ...");
  flags.flag("--skip-slow", skip_slow, "Leave out what runs the model.");
  if (const std::string help = flags.parse({argv + 1, argv + argc}); !help.empty()) {
    std::cout << help;
    return 0;
  }
  const std::string path =
      std::filesystem::exists(model) ? model : resolve_model(model, cache_folder(process_environment()) + "/models");
  const Checkpoint checkpoint = Checkpoint::open(path);
  const Subject subject{folder, checkpoint, Tokenizer(checkpoint.vocabulary())};
  bool all_passed = true;
  int ran = 0;
  for (const FamilyRow& row : kFamilies) {
    const bool chosen = families.empty() || std::find(families.begin(), families.end(), row.name) != families.end();
    if (!chosen || (skip_slow && row.slow)) continue;
    Family family(row.name);
    family.run(row.name, [&] { row.run(family, subject); });
    all_passed = family.finish() && all_passed;
    ++ran;
  }
  USER_CHECK(ran > 0, "[--family] there is no such family");
  return all_passed ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::check_parity(argc, argv); });
}
