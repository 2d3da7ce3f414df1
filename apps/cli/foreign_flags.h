#pragma once

// Flags of llama.cpp and mlx-lm, so that a pasted command works: those that have another name here, those that decide
// nothing here, and those whose meaning is not there, with what to use instead (foreign_flags.def). Flags of vLLM that
// decide nothing are in vllm_flags.h.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "engine/open_model.h"

namespace weft {

// The verb that translates flags.
struct FlagsOfVerb {
  std::string name;                                           // for messages
  KnownFlag takes_value;                                      // of this verb
  std::function<std::string(const std::string& flag)> owner;  // another verb that has the flag; "": none has it
};

// Returns the words after a verb with Weft's flags in place of those of other programs, and without those that decide
// nothing; reports both in `note`. A flag that the verb knows is never another program's. UserError for a flag whose
// meaning is not there, for a value that asks for what is not there, and where two flags of another program are one
// flag here but have different values.
std::vector<std::string> translate_foreign_flags(const std::vector<std::string>& words, const FlagsOfVerb& verb,
                                                 const NoteFunction& note);

// Reports flags that have no effect, those of one reason in one line.
void note_without_effect(const std::map<std::string, std::vector<std::string>>& flags_by_reason,
                         const NoteFunction& note);

}  // namespace weft
