#include "apps/cli/bench/requests.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kMostBytes = std::size_t{2} << 30;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24, kMostRequests = 1'000'000;
constexpr std::int64_t kCustomOutput = 256;
// vLLM leaves out conversations that are too short or too long to measure.
constexpr std::size_t kLeastTokens = 4, kMostPromptTokens = 1024, kMostTotalTokens = 2048;

// The library's distributions differ between compilers.
std::int64_t drawn(std::int64_t least, std::int64_t most, std::mt19937_64& random) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// Rounded outwards, and at least one.
std::int64_t drawn_length(std::int64_t length, double ratio, std::mt19937_64& random) {
  const auto scaled = static_cast<double>(length);
  const auto least = static_cast<std::int64_t>(std::floor(scaled * (1 - ratio)));
  const auto most = static_cast<std::int64_t>(std::ceil(scaled * (1 + ratio)));
  return std::max<std::int64_t>(1, drawn(least, most, random));
}

std::vector<BenchRequest> random_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary) {
  const RandomRequests& asked = arguments.random;
  const std::int64_t input_len = arguments.input_len.value_or(asked.input_len);
  const std::int64_t output_len = arguments.output_len.value_or(asked.output_len);
  in_range(input_len, 1, kMostTokens, "--random-input-len");
  in_range(output_len, 1, kMostTokens, "--random-output-len");
  in_range(asked.prefix_len, 0, kMostTokens, "--random-prefix-len");
  for (const double ratio : {asked.input_ratio, asked.output_ratio})
    USER_CHECK(ratio >= 0 && ratio < 1, "[--random-range-ratio] must be at least 0 and below 1, but is {}", ratio);
  std::mt19937_64 random(arguments.seed);
  const std::vector<int> prefix = random_ids(asked.prefix_len, vocabulary, random);
  std::vector<BenchRequest> requests(static_cast<std::size_t>(arguments.count));
  for (BenchRequest& request : requests) {
    request.ids = prefix;
    const std::vector<int> own = random_ids(drawn_length(input_len, asked.input_ratio, random), vocabulary, random);
    request.ids.insert(request.ids.end(), own.begin(), own.end());
    request.output_tokens = drawn_length(output_len, asked.output_ratio, random);
  }
  return requests;
}

std::string dataset_text(const DatasetArguments& arguments) {
  USER_CHECK(!arguments.path.empty(), "[--dataset-path] must be given with --dataset-name {}", arguments.name);
  return read_file(arguments.path, kMostBytes);
}

const Tokenizer& tokenizer_of(const BenchVocabulary& vocabulary) {
  USER_CHECK(vocabulary.tokenizer != nullptr, "[--tokenizer] the model has none, so that only random requests fit it");
  return *vocabulary.tokenizer;
}

const Json* text_at(const Json& conversation, std::size_t turn) {
  if (!conversation.is_object() || !conversation.contains("conversations")) return nullptr;
  const Json& turns = conversation["conversations"];
  if (!turns.is_array() || turns.size() < 2 || !turns[turn].is_object()) return nullptr;
  const auto value = turns[turn].find("value");
  return value != turns[turn].end() && value->is_string() ? &*value : nullptr;
}

// The first message and the length of its answer.
std::vector<BenchRequest> sharegpt_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary) {
  const Tokenizer& tokenizer = tokenizer_of(vocabulary);
  const std::int64_t asked = arguments.output_len.value_or(arguments.sharegpt_output_len);
  in_range(asked, 0, kMostTokens, "--sharegpt-output-len");
  const Json list = parse_json(dataset_text(arguments), arguments.path, {.most_bytes = kMostBytes, .deepest = 64});
  USER_CHECK(list.is_array(), "[{}] must be a list of conversations", arguments.path);
  std::vector<std::size_t> order(list.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(arguments.seed);
  for (std::size_t i = order.size(); !arguments.keeps_order && i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<BenchRequest> requests;
  for (const std::size_t i : order) {
    if (std::ssize(requests) == arguments.count) break;
    const Json *question = text_at(list[i], 0), *answered = text_at(list[i], 1);
    if (question == nullptr || answered == nullptr) continue;
    BenchRequest request{.text = question->get<std::string>()};
    request.ids = tokenizer.encode(request.text, {.add_special = true});
    const std::size_t answer = tokenizer.encode(answered->get<std::string>()).size();
    const bool has_length = asked > 0;
    request.output_tokens = has_length ? asked : static_cast<std::int64_t>(answer);
    const bool fits = request.ids.size() >= kLeastTokens && (has_length || answer >= kLeastTokens) &&
                      request.ids.size() <= kMostPromptTokens &&
                      request.ids.size() + static_cast<std::size_t>(request.output_tokens) <= kMostTotalTokens;
    if (fits) requests.push_back(std::move(request));
  }
  return requests;
}

// The length that a line of custom asks for, or the one that replaces it.
std::int64_t custom_length(const DatasetArguments& arguments, const Json& line, std::int64_t number) {
  const std::optional<std::int64_t> given = arguments.output_len ? arguments.output_len : arguments.custom_output_len;
  if (given && *given != -1) return in_range(*given, 1, kMostTokens, "--custom-output-len");
  if (!line.contains("output_tokens")) {
    USER_CHECK(!given, "[{}] line {} must have output_tokens, because --custom-output-len is -1", arguments.path,
               number);
    return kCustomOutput;
  }
  const Json& tokens = line["output_tokens"];
  USER_CHECK(tokens.is_number_integer() && tokens >= 1 && tokens <= kMostTokens,
             "[{}] line {}: output_tokens must be an integer of at least 1, but is {}", arguments.path, number,
             json_text(tokens));
  return tokens.get<std::int64_t>();
}

// A line is {"prompt": TEXT} and may have "output_tokens".
std::vector<BenchRequest> custom_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary) {
  const Tokenizer& tokenizer = tokenizer_of(vocabulary);
  std::istringstream lines(dataset_text(arguments));
  std::vector<BenchRequest> requests;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line) && std::ssize(requests) < arguments.count;) {
    ++number;
    if (trim(line).empty()) continue;
    const Json json = parse_json(line);
    USER_CHECK(json.is_object() && json.contains("prompt") && json["prompt"].is_string(),
               "[{}] line {} must be an object with a text `prompt`", arguments.path, number);
    BenchRequest request{.text = json["prompt"].get<std::string>()};
    request.output_tokens = custom_length(arguments, json, number);
    request.ids = tokenizer.encode(request.text, {.add_special = true});
    USER_CHECK(!request.ids.empty(), "[{}] line {}: the prompt must have at least one token", arguments.path, number);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

std::vector<int> random_ids(std::int64_t count, const BenchVocabulary& vocabulary, std::mt19937_64& random) {
  const Tokenizer* tokenizer = vocabulary.tokenizer;
  const std::int64_t size = tokenizer != nullptr ? tokenizer->token_count() : vocabulary.size;
  CHECK(size > 0, "a vocabulary has tokens");
  std::vector<int> ids;
  while (std::ssize(ids) < count) {
    const auto id = static_cast<int>(drawn(0, size - 1, random));
    if (tokenizer == nullptr || !tokenizer->is_special(id)) ids.push_back(id);
  }
  return ids;
}

void DatasetArguments::declare(Flags& flags) {
  flags.option("--dataset-name", name, "random, sharegpt or custom.", {.shows_default = true});
  flags.option("--dataset-path", path,
               "The file of sharegpt (JSON: a list of conversations) or custom (a JSON object with `prompt` on each "
               "line).");
  flags.option("--num-prompts", count, "How many requests.", {.shows_default = true});
  flags.option("--seed", seed, "Seed of the requests and of their times.", {.shows_default = true});
  flags.flag("--disable-shuffle", keeps_order, "Take the conversations of sharegpt in their order.");
  flags.flag("--no-oversample", never_repeats, "Do not repeat a dataset that has fewer requests than --num-prompts.");
  declare_lengths(flags);
}

void DatasetArguments::declare_lengths(Flags& flags) {
  const auto length = [&flags](const char* name, std::optional<std::int64_t>& target, const std::string& sentence,
                               std::int64_t least) {
    flags.option(
        name,
        [=, &target](const std::string& text) {
          target = in_range(human_integer(text, name), least, kMostTokens, name);
        },
        sentence);
  };
  length("--input-len", input_len, "The same as --random-input-len, and wins over it.", 1);
  length("--output-len", output_len, "Tokens to generate, of any dataset; wins over the option of the dataset.", 1);
  flags.option("--random-input-len", random.input_len, "Tokens of random prompts.", {.shows_default = true});
  flags.option("--random-output-len", random.output_len, "Tokens to generate after random prompts.",
               {.shows_default = true});
  flags.option(
      "--random-range-ratio", [this](const std::string& text) { set_ratios(text); },
      "Draw both lengths from 1 - R to 1 + R of what is given, or each with its own: {\"input\": R, \"output\": R}.");
  flags.option("--random-prefix-len,--prefix-len", random.prefix_len,
               "Tokens before each random prompt, the same for all.", {.shows_default = true});
  length(
      "--custom-output-len", custom_output_len,
      "Tokens to generate for custom; -1: as many as the line says. If it is not given: what the line says, else 256.",
      -1);
  flags.option("--sharegpt-output-len", sharegpt_output_len,
               "Tokens to generate for sharegpt; 0: as many as the recorded answer has.", {.shows_default = true});
}

// A number for both, or {"input": R, "output": R}.
void DatasetArguments::set_ratios(const std::string& text) {
  const char* flag = "--random-range-ratio";
  if (!text.starts_with('{')) {
    random.input_ratio = random.output_ratio = decimal_number(text, flag);
    return;
  }
  const Json ratios = parse_json(text);
  const auto of = [&](const char* key) {
    USER_CHECK(ratios.contains(key) && ratios[key].is_number() && ratios.size() == 2,
               "[{}] must be a number or {{\"input\": R, \"output\": R}}, but is {}", flag, quote(text));
    return ratios[key].get<double>();
  };
  random.input_ratio = of("input");
  random.output_ratio = of("output");
}

std::vector<BenchRequest> bench_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary) {
  in_range(arguments.count, 1, kMostRequests, "--num-prompts");
  std::vector<BenchRequest> requests;
  if (arguments.name == "random") {
    requests = random_requests(arguments, vocabulary);
  } else if (arguments.name == "sharegpt") {
    requests = sharegpt_requests(arguments, vocabulary);
  } else if (arguments.name == "custom") {
    requests = custom_requests(arguments, vocabulary);
  } else {
    fail_user("[--dataset-name] must be random, sharegpt or custom, but is {}", quote(arguments.name));
  }
  USER_CHECK(!requests.empty(), "[--dataset-path] {} has no request that fits", quote(arguments.path, 1000));
  // vLLM repeats those that there are, too.
  const std::size_t known = requests.size();
  for (std::size_t i = 0; !arguments.never_repeats && std::ssize(requests) < arguments.count; ++i)
    requests.push_back(requests[i % known]);
  return requests;
}

std::vector<std::string> models_of_requests(const std::vector<std::string>& adapters, const std::string& assignment,
                                            std::uint64_t seed, const std::string& model, std::size_t count) {
  std::vector<std::string> models(count, model);
  if (adapters.empty()) return models;
  std::vector<std::string> names;
  for (const std::string& adapter : adapters) names.push_back(adapter.substr(0, adapter.find('=')));
  std::mt19937_64 random(seed);
  const std::int64_t last = std::ssize(names) - 1;
  for (std::size_t i = 0; i < count; ++i)
    models[i] = names[assignment == "random" ? static_cast<std::size_t>(drawn(0, last, random)) : i % names.size()];
  return models;
}

}  // namespace weft
