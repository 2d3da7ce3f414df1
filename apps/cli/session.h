#pragma once

// What verbs that take a model share: the MODEL argument, prompts from flags, files or standard input, opening an
// engine.

#include <memory>
#include <string>

#include "apps/cli/verb.h"
#include "base/effective_options.h"
#include "engine/engine.h"
#include "engine/open_model.h"

namespace weft {

// MODEL or -m/--model.
struct ModelArgument {
  enum Need : bool { optional, required };
  std::string name;
  std::string checkpoint;  // of an artifact, where it is not found by itself
  void declare(Flags& flags, Need need = required);
  // The same for a verb that runs models, which takes an artifact of `weft compile`, too.
  void declare_to_run(Flags& flags);
  // UserError when there is no such model, or it is an artifact.
  std::string path(const VerbCall& call) const;
  // What is there, as --load-format asks for it.
  Checkpoint open(const VerbCall& call) const;
};

// -p/--prompt TEXT (`-` for standard input) or -f/--file FILE.
struct PromptArgument {
  std::string text;
  std::string file;
  bool has_text = false;
  void declare(Flags& flags);
  // UserError when there is none, or it is not UTF-8.
  std::string read(const VerbCall& call) const;
};

// --temp --top-k ... into SamplingParameters; what is not given comes from the model's generation config.
struct SamplingArguments {
  SamplingParameters given;
  std::string generation_config = "auto";
  Flags* flags = nullptr;
  void declare(Flags& app);
  // Keys of the generation config of which nothing is known go to the context's log.
  SamplingParameters resolve(const Checkpoint& checkpoint, const Log& log) const;
};

// A JSON list of token ids. UserError naming `[what]` for anything else.
std::vector<int> parse_token_ids(const std::string& text, const std::string& what);

// All of standard input. UserError naming `[what]` when it is longer than a prompt may be.
std::string read_standard_input(const VerbCall& call, const std::string& what);

// A Context of the effective options; what differs from what was asked for, and what has no effect, is said on `err`.
std::shared_ptr<Context> open_context(const VerbCall& call, std::vector<OptionDifference>* differences = nullptr,
                                      std::optional<CpuFeatures> target = {});

// UserError, `[verb] measures calls by the host's clock, ..`, where they are not the host's.
void check_host_is_measured(const Context& context, const std::string& verb);

// What a verb runs, in a Context as above; `watch`, if there is one, is told of its laps.
OpenedModel open_model(const VerbCall& call, const ModelArgument& model,
                       std::vector<OptionDifference>* differences = nullptr, Stopwatch* watch = nullptr);
// What options cost the model that was opened.
void print_notes(const ModelRunner& runner, std::ostream& err);
// What is left out of the tokenizer's files, except what one of the notes says as well.
void print_warnings(const Vocabulary& vocabulary, std::ostream& err, const std::vector<std::string>& notes = {});
// Whose times are measured, where a fake device's are not a device's.
void print_emulated(const Context& context, std::ostream& err);
std::unique_ptr<Engine> open_engine(const VerbCall& call, const ModelArgument& model);

// The closing lines: prompt and generation rate, peak memory, and what was captured since the engine was ready, if
// anything was.
void print_statistics(const Engine::Generation& generation, std::size_t prompt_tokens, const ModelRunner& runner,
                      std::ostream& err);

// log(sum(exp(logits))) in double precision.
double log_sum_exp(std::span<const float> logits);
// -log of the probability of a token; infinite logits share all of it.
double negative_log_likelihood(std::span<const float> logits, std::size_t id);

// Largest resident set of this process so far, in bytes.
std::int64_t peak_memory_bytes();

}  // namespace weft
