#pragma once

// Verbs that take a model share these: the MODEL argument, prompts from flags, files or standard input, and opening an
// engine.

#include <memory>
#include <string>

#include "apps/cli/verb.h"
#include "engine/engine.h"
#include "engine/open_model.h"
#include "options/effective_options.h"

namespace weft {

// The argument MODEL or -m/--model.
struct ModelArgument {
  enum Need : bool { optional, required };
  std::string name;
  std::string checkpoint;  // of an artifact whose checkpoint is not found automatically
  void declare(Flags& flags, Need need = required);
  // The same for a verb that runs models. Such a verb also accepts an artifact of `weft compile`.
  void declare_to_run(Flags& flags);
  // Throws UserError if the model does not exist, or if it is an artifact.
  std::string path(const VerbCall& call) const;
  // Opens the checkpoint in the format of --load-format.
  Checkpoint open(const VerbCall& call) const;
};

// The arguments -p/--prompt TEXT (`-` for standard input) and -f/--file FILE.
struct PromptArgument {
  std::string text;
  std::string file;
  bool has_text = false;
  void declare(Flags& flags);
  // Throws UserError if there is no prompt, or if it is not UTF-8.
  std::string read(const VerbCall& call) const;
};

// Reads --temp, --top-k ... into SamplingParameters. Parameters that are not given come from the model's generation
// config.
struct SamplingArguments {
  SamplingParameters given;
  std::string generation_config = "auto";
  Flags* flags = nullptr;
  void declare(Flags& app);
  // Unknown keys of the generation config are reported in the context's log.
  SamplingParameters resolve(const Checkpoint& checkpoint, const Log& log) const;
};

// Parses a JSON list of token ids. Throws a UserError that names `[what]` for anything else.
std::vector<int> parse_token_ids(const std::string& text, const std::string& what);

// Reads all of standard input. Throws a UserError that names `[what]` if it is longer than a prompt may be.
std::string read_standard_input(const VerbCall& call, const std::string& what);

// Opens a Context with the effective options. Prints to `err` which options differ from the request and which have no
// effect.
std::shared_ptr<Context> open_context(const VerbCall& call, std::vector<OptionDifference>* differences = nullptr,
                                      std::optional<CpuFeatures> target = {});

// Throws UserError, `[verb] measures calls by the host's clock, ..`, if the context's device does not run calls on the
// host.
void check_host_is_measured(const Context& context, const std::string& verb);

// Opens the model that a verb runs, in a Context as above. If `watch` is not null, it receives the laps.
OpenedModel open_model(const VerbCall& call, const ModelArgument& model,
                       std::vector<OptionDifference>* differences = nullptr, Stopwatch* watch = nullptr);
// Prints the effects of the options on the opened model.
void print_notes(const ModelRunner& runner, std::ostream& err);
// Prints which parts of the tokenizer's files are ignored, except those that `notes` already mentions.
void print_warnings(const Vocabulary& vocabulary, std::ostream& err, const std::vector<std::string>& notes = {});
// On a fake device, prints that the times are those of the host that emulates it.
void print_emulated(const Context& context, std::ostream& err);
std::unique_ptr<Engine> open_engine(const VerbCall& call, const ModelArgument& model);

// Prints the closing lines: prompt and generation rate, peak memory, and the graphs that were captured after the engine
// was ready, if any.
void print_statistics(const Engine::Generation& generation, std::size_t prompt_tokens, const ModelRunner& runner,
                      std::ostream& err);

// Returns log(sum(exp(logits))) in double precision.
double log_sum_exp(std::span<const float> logits);
// Returns -log of the probability of a token. Infinite logits share all of the probability.
double negative_log_likelihood(std::span<const float> logits, std::size_t id);

// Returns the largest resident set size of this process so far, in bytes.
std::int64_t peak_memory_bytes();

}  // namespace weft
