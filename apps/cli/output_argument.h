#pragma once

// The flags --json-schema, --grammar and their forms that read a file: what an answer may be.

#include <memory>
#include <string>

#include "apps/cli/flags.h"
#include "engine/engine.h"

namespace weft {

struct OutputArgument {
  std::string schema, schema_file, grammar, grammar_file;
  void declare(Flags& flags);
  // Null without the flags. Throws UserError for a schema or grammar that cannot be enforced.
  std::shared_ptr<const TokenConstraint> constraint(Engine& engine) const;
};

}  // namespace weft
