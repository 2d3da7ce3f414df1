#pragma once

// Flags of `vllm serve` that decide nothing here. They are accepted, so that a pasted command works, and reported.

#include <map>
#include <string>

#include "apps/cli/flags.h"
#include "engine/open_model.h"

namespace weft {

class VllmFlags {
 public:
  // parse() throws UserError for a value that asks for what is not there.
  void declare(Flags& flags);
  // Reports the flags that were given, those with the same reason in one line.
  void report(const NoteFunction& note) const;

 private:
  std::map<std::string, bool> given_;  // by the first name of each
};

}  // namespace weft
