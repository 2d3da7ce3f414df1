#include "apps/cli/session.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/effective_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/options_text.h"
#include "base/text.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/pipeline.h"

namespace weft {
namespace {

constexpr std::size_t kMaxPromptBytes = 64u << 20;

void check_pass_names(const std::vector<std::string>& names, const char* option) {
  std::vector<std::string> known;
  for (const PassRow& row : pipeline_passes()) known.push_back(row.name);
  for (const std::string& name : names)
    USER_CHECK(name == "all" || std::find(known.begin(), known.end(), name) != known.end(), "[{}] {} is not a pass{}",
               option, quote(name), suggestion(name, known));
}

}  // namespace

void ModelArgument::declare(CLI::App& flags, Need need) {
  flags.add_option("model,-m,--model", name, "A GGUF file, a folder with config.json, or a built-in name.")
      ->required(need == required);
}

std::string ModelArgument::path(const VerbCall& call) const {
  if (std::filesystem::exists(name)) return name;
  const std::string& root = call.options.cache_root;
  return resolve_model(name, (root.empty() ? cache_folder(call.environment) : root) + "/models");
}

void PromptArgument::declare(CLI::App& flags) {
  auto* prompt = flags.add_option_function<std::string>(
      "-p,--prompt",
      [this](const std::string& given) {
        text = given;
        has_text = true;
      },
      "The prompt; - reads standard input.");
  flags.add_option("-f,--file", file, "Read the prompt from a file.")->excludes(prompt);
}

std::string PromptArgument::read(const VerbCall& call) const {
  USER_CHECK(has_text || !file.empty(), "[prompt] must be given: -p TEXT, -p - or -f FILE");
  std::string prompt = text;
  if (!file.empty()) {
    prompt = read_file(file, kMaxPromptBytes);
  } else if (text == "-") {
    prompt = read_standard_input(call, "prompt");
  }
  const auto bad = first_invalid_utf8(prompt);
  USER_CHECK(!bad, "[prompt] must be UTF-8, but is not from byte {} on", *bad);
  return prompt;
}

void SamplingArguments::declare(CLI::App& app) {
  flags = &app;
  app.add_option_function<std::string>(
         "-n,--max-tokens", [this](const std::string& text) { given.max_tokens = human_integer(text, "--max-tokens"); },
         "Most tokens to generate.")
      ->default_str(std::to_string(given.max_tokens));
  app.add_option("--temp,--temperature", given.temperature, "0 takes the most likely token.");
  app.add_option("--top-k", given.top_k, "Draw from the K most likely tokens; 0 is off.");
  app.add_option("--top-p", given.top_p, "Draw from the most likely tokens that hold this probability.");
  app.add_option("--min-p", given.min_p, "Leave out tokens below this share of the most likely one.");
  app.add_option("--repeat-penalty,--repetition-penalty", given.repetition_penalty,
                 "Above 1 makes repetition less likely.");
  app.add_option("--frequency-penalty", given.frequency_penalty, "Lowers tokens by how often they were generated.");
  app.add_option("--presence-penalty", given.presence_penalty, "Lowers tokens that were generated.");
  app.add_option("-s,--seed", given.seed, "Seed of the draw.")->capture_default_str();
  app.add_option("--stop", given.stop, "Text that ends the answer; may be given several times.");
  app.add_flag("--ignore-eos", given.ignore_end, "Go on after end-of-text tokens.");
}

SamplingParameters SamplingArguments::resolve(const Checkpoint& checkpoint) const {
  SamplingParameters parameters = given;
  const GenerationConfig config = checkpoint.generation_config();
  const bool greedy = config.do_sample && !*config.do_sample;
  auto take = [&](const char* flag, auto& field, const auto& configured) {
    if (flags->get_option(flag)->count() == 0 && configured && !greedy) field = *configured;
  };
  take("--temp", parameters.temperature, config.temperature);
  take("--top-k", parameters.top_k, config.top_k);
  take("--top-p", parameters.top_p, config.top_p);
  take("--min-p", parameters.min_p, config.min_p);
  take("--repeat-penalty", parameters.repetition_penalty, config.repetition_penalty);
  parameters.check();
  return parameters;
}

std::vector<int> parse_token_ids(const std::string& text, const std::string& what) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  USER_CHECK(list.is_array(), "[{}] must be a JSON list of token ids, but is {}", what, quote(text));
  std::vector<int> ids;
  for (const nlohmann::json& id : list) {
    USER_CHECK(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int>::max(),
               "[{}] must hold token ids, but holds {}", what, quote(id.dump()));
    ids.push_back(id.get<int>());
  }
  return ids;
}

std::string read_standard_input(const VerbCall& call, const std::string& what) {
  std::string text(std::istreambuf_iterator<char>(call.in), {});
  USER_CHECK(text.size() <= kMaxPromptBytes, "[{}] must be at most {} bytes, but is {}", what, kMaxPromptBytes,
             text.size());
  return text;
}

std::shared_ptr<Context> open_context(const VerbCall& call) {
  Options requested = call.options;
  if (!requested.custom_ops.empty()) {
    std::vector<std::string> names;
    const OpTable ops = make_op_table();
    for (const auto& [name, op] : ops.all()) names.push_back(name);
    for (const std::string& spelling : translate_custom_ops(requested, names))
      call.err << "weft: -cc.custom_ops is spelled " << spelling << "\n";
  }
  check_pass_names(requested.print_ir_after, "--print-ir-after");
  check_pass_names(requested.skip_pass, "--skip-pass");
  EffectiveOptions effective = effective_options(requested);
  for (const OptionDifference& difference : effective.differences)
    call.err << fmt::format("weft: {} is {} instead of {}: {}\n", difference.option, difference.effective,
                            difference.requested, difference.reason);
  for (const std::string& sentence : options_without_effect(effective.options))
    call.err << "weft: " << sentence << "\n";
  return make_context(std::move(effective.options));
}

std::unique_ptr<Engine> open_engine(const VerbCall& call, const ModelArgument& model) {
  return std::make_unique<Engine>(open_context(call), Checkpoint::open(model.path(call)), make_model_registry());
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::int64_t peak_memory_bytes() {
  // Not getrusage: its maximum also counts what this process was before exec.
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

void print_statistics(const Engine::Generation& generation, std::size_t prompt_tokens, std::ostream& err) {
  const auto rate = [](std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const std::size_t generated = generation.tokens.size(), timed = generated > 0 ? generated - 1 : 0;
  err << fmt::format("Prompt: {} tokens, {:.3f} tokens-per-sec\n", prompt_tokens,
                     rate(prompt_tokens, generation.prompt_seconds))
      << fmt::format("Generation: {} tokens, {:.3f} tokens-per-sec\n", generated,
                     rate(timed, generation.generation_seconds))
      << fmt::format("Peak memory: {:.3f} GB\n", static_cast<double>(peak_memory_bytes()) / 1e9);
}

}  // namespace weft
