#pragma once

// The flag --target of the verbs that compile without running what they compiled.

#include <memory>
#include <string>

#include "apps/cli/session.h"

namespace weft {

struct TargetArgument {
  std::string given;  // cpu=FEATURES, or "" for this host
  void declare(Flags& flags);
  // Opens a Context that compiles for the target. UserError for any other target, and where the options ask for
  // measurements that need a processor like the target.
  std::shared_ptr<Context> open_context(VerbCall& call) const;
};

}  // namespace weft
