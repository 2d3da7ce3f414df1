#pragma once

// Verbs that take a model share these: the MODEL argument, prompts from flags, files or standard input, the flags of
// sampling, and the lines that are printed for the user.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "apps/cli/verb.h"
#include "base/json.h"
#include "engine/open_model.h"
#include "engine/sampling/sampling_request.h"
#include "io/embedding_config.h"

namespace weft {

// The verbs that take an artifact of `weft compile`, for messages.
inline constexpr const char* kArtifactVerbs =
    "complete, chat, logits, embed, explain, serve, run-batch and bench (latency, model, serve, throughput)";

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
  // For open_model() and open_engine().
  ModelRequest request(const VerbCall& call) const;
  // Opens the checkpoint in the format of --load-format.
  Checkpoint open(const VerbCall& call) const;
};

// The arguments -p/--prompt TEXT (`-` for standard input), -e/--escape and -f/--file FILE.
struct PromptArgument {
  std::string text;
  std::string file;
  bool has_text = false;
  bool has_escapes = false;
  bool is_given() const { return has_text || !file.empty(); }
  void declare(Flags& flags);
  // Throws UserError if there is no prompt, or if it is not UTF-8.
  std::string read(const VerbCall& call) const;
};

// The flags --temp, --top-k ..., --max-tokens and those of the generation config. What they have is the default of a
// server's requests, or the parameters of one answer.
struct SamplingArguments {
  SamplingRequest given;
  Flags* flags = nullptr;
  // `defaults` are the parameters without a flag, but for the length, whose flag says `length`.
  void declare_defaults(Flags& app, const SamplingParameters& defaults, const std::string& length);
  // Also those of one answer: --seed, --stop and --ignore-eos.
  void declare(Flags& app);
  SamplingRequest request() const;
  // The parameters of an answer. Reports flags that a temperature of 0 leaves without effect.
  SamplingParameters parameters(Engine& engine, const VerbCall& call) const;
};

// The arguments --chat-template NAME|FILE and --chat-template-kwargs JSON.
struct TemplateArgument {
  std::string given;
  std::string keywords;
  void declare(Flags& flags);
  // Throws UserError unless the keywords are an object.
  Json arguments() const;
};

// The argument --pooling last|mean|cls.
struct PoolingArgument {
  std::string word;
  void declare(Flags& flags);
  // Nullopt: as the checkpoint states. Throws UserError for another word.
  std::optional<Pooling> pooling() const;
};

// Parses a JSON list of token ids. Throws a UserError that names `[what]` for anything else.
std::vector<int> parse_token_ids(const std::string& text, const std::string& what);

// Reads all of standard input. Throws a UserError that names `[what]` if it is longer than a prompt may be, and one
// that names `[stdin]` if it cannot be read.
std::string read_standard_input(const VerbCall& call, const std::string& what);

// Throws UserError if reading standard input failed, which a loop over its lines takes for the end.
void check_input_was_read(const VerbCall& call);

// Returns the value of a flag. UserError unless it is from `least` to `most`.
std::int64_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& flag);

// Prints each sentence as a line on the verb's `err`.
NoteFunction notes_to(const VerbCall& call);
// The same at once, and whole lines from several threads.
NoteFunction log_to(const VerbCall& call);
void print_notes(std::span<const std::string> notes, std::ostream& err);

// Opens a Context with the verb's options for a verb without a model to run, and prints the notes on them.
std::shared_ptr<Context> open_context(const VerbCall& call, std::optional<CpuFeatures> target = {});

// Throws UserError, `[verb] measures calls by the host's clock, ..`, if the context's device does not run calls on the
// host.
void check_host_is_measured(const Context& context, const std::string& verb);

// On a fake device, prints that the times are those of the host that emulates it.
void print_emulated(const Context& context, std::ostream& err);

// Returns "stop" or "length".
const char* reason_text(FinishReason reason);

// Prints the closing lines: prompt and generation rate, peak memory, and the graphs that were captured after the engine
// was ready, if any.
void print_statistics(const Engine::Generation& generation, std::size_t prompt_tokens, const ModelRunner& runner,
                      std::ostream& err);

}  // namespace weft
