#pragma once

// Flags of vLLM's commands that decide nothing here, and those that ask for what is not there. The first are accepted,
// so that a pasted command works, and reported; the others are refused with the reason.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "engine/open_model.h"

namespace weft {

// `vllm serve`; `vllm bench serve`; `vllm bench latency` and `throughput`.
enum class VllmCommand : std::uint8_t { serve = 1, bench_serve = 2, bench_engine = 4 };

class VllmFlags {
 public:
  explicit VllmFlags(VllmCommand command) : command_(command) {}
  // parse() throws UserError for a flag or a value that asks for what is not there.
  void declare(Flags& flags);
  // Reports the flags that were given, those with the same reason in one line. UserError if a flag that must name the
  // model that is run names another one.
  void report(const std::string& model, const NoteFunction& note) const;
  // UserError if --quantization names another format than the checkpoint has. Reports it if it is that format.
  void check_quantization(const Checkpoint& checkpoint, const ModelConfig& config, const NoteFunction& note) const;

 private:
  VllmCommand command_;
  std::map<std::string, bool> given_;          // by the first name of each
  std::map<std::string, std::string> models_;  // values of flags that must name the model that is run
  std::string quantization_;                   // "" if it is not given
};

}  // namespace weft
