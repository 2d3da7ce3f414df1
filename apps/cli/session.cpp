#include "apps/cli/session.h"

#include <charconv>
#include <iostream>
#include <iterator>
#include <limits>
#include <mutex>
#include <random>

#include "apps/cli/foreign_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/resident_memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/artifact/artifact.h"
#include "engine/conversation.h"
#include "engine/open_checkpoint.h"

namespace weft {
namespace {

constexpr std::size_t kMaxPromptBytes = 64u << 20;

// Flags and the keys of SamplingRequest::given.
constexpr std::pair<const char*, const char*> kConfiguredFlags[] = {{"--temp", "temperature"},
                                                                    {"--top-k", "top_k"},
                                                                    {"--top-p", "top_p"},
                                                                    {"--min-p", "min_p"},
                                                                    {"--repeat-penalty", "repetition_penalty"},
                                                                    {"--frequency-penalty", "frequency_penalty"},
                                                                    {"--presence-penalty", "presence_penalty"},
                                                                    {"--max-tokens", "max_new_tokens"}};

// An unknown escape stays as it is, as in llama.cpp.
std::string without_escapes(const std::string& text) {
  constexpr std::string_view kLetters = "nrt'\"\\", kMeanings = "\n\r\t'\"\\";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const std::size_t letter = next == '\0' ? std::string_view::npos : kLetters.find(next);
    unsigned code = 0;
    const char* end = text.data() + std::min(i + 4, text.size());
    if (letter != std::string_view::npos) {
      result += kMeanings[letter];
      ++i;
    } else if (next == 'x' && i + 4 <= text.size() && std::from_chars(text.data() + i + 2, end, code, 16).ptr == end) {
      result += static_cast<char>(code);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

void ModelArgument::declare(Flags& flags, Need need) {
  flags.option("model,-m,--model", name,
               "A GGUF file, a folder with config.json, or a name that is built in or in --models-root.",
               {.required = need == required});
}

void ModelArgument::declare_to_run(Flags& flags) {
  flags.option(
      "model,-m,--model", name,
      "A GGUF file, a folder with config.json, a name that is built in or in --models-root, or an artifact of weft "
      "compile.",
      {.required = true});
  flags.option("--checkpoint", checkpoint, "The model of an artifact, if it is not next to it.");
}

std::string ModelArgument::path(const VerbCall& call) const {
  USER_CHECK(!is_artifact(name), "[{}] is an artifact, which {} take; name its model here", quote(name, 1000),
             kArtifactVerbs);
  return resolve_model(name, call.options, call.environment);
}

ModelRequest ModelArgument::request(const VerbCall& call) const {
  return {.name = name, .checkpoint = checkpoint, .options = call.options, .environment = call.environment};
}

Checkpoint ModelArgument::open(const VerbCall& call) const {
  return open_checkpoint(path(call), call.options, make_model_registry());
}

void PromptArgument::declare(Flags& flags) {
  const auto take = [this](const std::string& given) {
    text = given;
    has_text = true;
  };
  flags.option("-p,--prompt", take, "The prompt; - reads standard input.");
  flags.option("-f,--file", file, "Read the prompt from a file.", {.excludes = {"--prompt"}});
  flags.flag("-e,--escape", has_escapes, "Read \\n, \\r, \\t, \\x41, \\\\, \\' and \\\" in the prompt as in C.");
}

std::string PromptArgument::read(const VerbCall& call) const {
  USER_CHECK(is_given(), "[prompt] must be given: -p TEXT, -p - or -f FILE");
  std::string prompt = text;
  if (!file.empty()) {
    prompt = read_file(file, kMaxPromptBytes);
  } else if (text == "-") {
    prompt = read_standard_input(call, "prompt");
  }
  if (has_escapes) prompt = without_escapes(prompt);
  const auto bad = first_invalid_utf8(prompt);
  USER_CHECK(!bad, "[prompt] must be UTF-8, but is not from byte {} on", *bad);
  return prompt;
}

void SamplingArguments::declare_defaults(Flags& app, const SamplingParameters& defaults, const std::string& length) {
  flags = &app;
  given.parameters = defaults;
  SamplingParameters& values = given.parameters;
  const auto take = [&values](const std::string& text) {
    const std::int64_t count = human_integer(text, "--max-tokens");
    values.max_tokens = count == -1 ? std::numeric_limits<std::int32_t>::max() : count;
  };
  app.option("-n,--max-tokens", take, length + "; -1: as many as the context has room for.");
  app.option("--temp,--temperature", values.temperature,
             fmt::format("0 takes the most likely token. Else as the model's generation config says, or {}.",
                         defaults.temperature));
  app.option("--top-k", values.top_k, "Draw from the K most likely tokens; 0 is off.");
  app.option("--top-p", values.top_p, "Draw from the most likely tokens that hold this probability.");
  app.option("--min-p", values.min_p, "Leave out tokens below this share of the most likely one.");
  app.option("--repeat-penalty,--repetition-penalty", values.repetition_penalty,
             "Above 1 makes repetition less likely.");
  app.option("--frequency-penalty", values.frequency_penalty, "Lowers tokens by how often they were generated.");
  app.option("--presence-penalty", values.presence_penalty, "Lowers tokens that were generated.");
  app.option("--generation-config", given.config.from,
             "auto takes defaults of sampling from the model's generation_config.json, a folder from the one in it; "
             "none (or vllm) reads none.",
             {.shows_default = true});
  app.option(
      "--override-generation-config", given.config.overrides,
      "JSON: an object of temperature, top_k, top_p, min_p, repetition_penalty and max_new_tokens that replaces such "
      "defaults.");
}

void SamplingArguments::declare(Flags& app) {
  declare_defaults(app, {}, fmt::format("Most tokens to generate ({})", given.parameters.max_tokens));
  SamplingParameters& values = given.parameters;
  const auto take_seed = [&values](const std::string& text) {
    const std::int64_t seed = human_integer(text, "--seed");
    USER_CHECK(seed >= -1, "[--seed] must be at least -1, but is {}", seed);
    values.seed = seed == -1 ? std::random_device()() : static_cast<std::uint64_t>(seed);
  };
  app.option("-s,--seed", take_seed, "Seed of the draw (0); -1: another one each time.");
  app.option("--stop", values.stop, "Text that ends the answer; may be given several times.");
  app.flag("--ignore-eos", values.ignore_end, "Go on after end-of-text tokens.");
}

SamplingRequest SamplingArguments::request() const {
  SamplingRequest request = given;
  for (const auto& [flag, key] : kConfiguredFlags)
    if (flags->given(flag)) request.given.emplace_back(key);
  return request;
}

SamplingParameters SamplingArguments::parameters(Engine& engine, const VerbCall& call) const {
  SamplingParameters result = sampling_parameters(request(), engine.runner().checkpoint(), engine.context().log);
  std::vector<std::string> idle;
  for (const char* flag : {"--top-k", "--top-p", "--min-p", "--seed"})
    if (result.temperature == 0 && flags->given(flag)) idle.emplace_back(flag);
  if (!idle.empty())
    note_without_effect({{"the temperature is 0, which takes the most likely token (--temp)", idle}}, notes_to(call));
  return result;
}

void TemplateArgument::declare(Flags& flags) {
  flags.option("--chat-template,--template", given,
               "The name of one of the model's templates, or a Jinja file, instead of the one that fits.");
  flags.option("--chat-template-kwargs,--default-chat-template-kwargs", keywords,
               "JSON: an object of variables for the template, such as {\"enable_thinking\": false}.");
}

Json TemplateArgument::arguments() const { return parse_template_arguments(keywords, "--chat-template-kwargs"); }

void PoolingArgument::declare(Flags& flags) {
  flags.option("--pooling", word,
               "Which last hidden states of a text are its embedding: last, mean or cls (the first). Else as the "
               "checkpoint states.");
}

std::optional<Pooling> PoolingArgument::pooling() const {
  return word.empty() ? std::nullopt : std::optional(pooling_from_text(word, "--pooling"));
}

std::vector<int> parse_token_ids(const std::string& text, const std::string& what) {
  const Json list = parse_json(text);
  USER_CHECK(list.is_array(), "[{}] must be a JSON list of token ids, but is {}", what, quote(text));
  std::vector<int> ids;
  for (const Json& id : list) {
    USER_CHECK(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int>::max(),
               "[{}] must hold token ids, but holds {}", what, quote(json_text(id)));
    ids.push_back(id.get<int>());
  }
  return ids;
}

std::string read_standard_input(const VerbCall& call, const std::string& what) {
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(call.in), {});
  } catch (const std::ios_base::failure& error) {
    fail_user("[stdin] cannot be read: {}", error.code().message());
  }
  USER_CHECK(text.size() <= kMaxPromptBytes, "[{}] must be at most {} bytes, but is {}", what, kMaxPromptBytes,
             text.size());
  return text;
}

void check_input_was_read(const VerbCall& call) { USER_CHECK(!call.in.bad(), "[stdin] cannot be read"); }

std::int64_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& flag) {
  USER_CHECK(value >= least && value <= most, "[{}] must be from {} to {}, but is {}", flag, least, most, value);
  return value;
}

NoteFunction notes_to(const VerbCall& call) {
  return [&err = call.err](const std::string& sentence) { err << "weft: " << sentence << "\n"; };
}

NoteFunction log_to(const VerbCall& call) {
  return [&err = call.err, mutex = std::make_shared<std::mutex>()](const std::string& sentence) {
    const std::string line = "weft: " + sentence + "\n";
    const std::lock_guard lock(*mutex);
    err << line << std::flush;
  };
}

void print_notes(std::span<const std::string> notes, std::ostream& err) {
  for (const std::string& note : notes) err << "weft: " << note << "\n";
}

std::shared_ptr<Context> open_context(const VerbCall& call, std::optional<CpuFeatures> target) {
  OpenedContext opened = open_context(call.options, target);
  print_notes(opened.notes, call.err);
  return opened.context;
}

void check_host_is_measured(const Context& context, const std::string& verb) {
  USER_CHECK(context.stream_device == nullptr,
             "[{}] measures calls by the host's clock, which does not measure what {} does later: wanted --device cpu",
             verb, device_text(context.device.id));
}

void print_emulated(const Context& context, std::ostream& err) {
  if (context.device.id.type == DeviceType::fake_cuda)
    err << fmt::format("weft: {} is emulated: times are of the host that does so, and not of a device\n",
                       device_text(context.device.id));
}

const char* reason_text(FinishReason reason) { return reason == FinishReason::stop ? "stop" : "length"; }

void print_statistics(const Engine::Generation& generation, std::size_t prompt_tokens, const ModelRunner& runner,
                      std::ostream& err) {
  const auto rate = [](std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const std::size_t generated = generation.tokens.size(), timed = generated > 0 ? generated - 1 : 0;
  const auto cached = static_cast<std::size_t>(generation.cached_tokens);
  const std::string of_cache = cached > 0 ? fmt::format(" ({} from the prefix cache)", cached) : "";
  err << fmt::format("Prompt: {} tokens{}, {:.3f} tokens-per-sec\n", prompt_tokens, of_cache,
                     rate(prompt_tokens - cached, generation.prompt_seconds))
      << fmt::format("Generation: {} tokens, {:.3f} tokens-per-sec\n", generated,
                     rate(timed, generation.generation_seconds))
      << fmt::format("Peak memory: {:.3f} GB\n", static_cast<double>(peak_resident_bytes()) / 1e9);
  if (generation.proposed_tokens > 0)
    err << fmt::format("Proposed: {} tokens, {} kept\n", generation.proposed_tokens, generation.kept_tokens);
  const ReplayReport replay = runner.replay_report();
  const FirstTimeWork::Counts captured = replay.first_time[static_cast<std::size_t>(FirstTime::capture)];
  if (captured.after_ready > 0)
    err << fmt::format("Captures after ready: {}, {:.3f} ms\n", captured.after_ready,
                       captured.milliseconds_after_ready);
  if (replay.padded_rows > 0) err << fmt::format("Rows of padding: {}\n", replay.padded_rows);
}

}  // namespace weft
