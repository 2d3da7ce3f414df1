#pragma once

// The flags of verbs that answer requests: the model, its names for clients, its chat template and its defaults of
// sampling.

#include <string>
#include <vector>

#include "apps/cli/session.h"
#include "server/served_model.h"

namespace weft {

struct ServedModelArgument {
  ModelArgument model;
  std::vector<std::string> names;
  TemplateArgument chat_template;
  GenerationConfigSource generation_config;

  void declare(Flags& flags);
  // UserError for values that are wrong.
  ServedModelSettings settings() const;
};

}  // namespace weft
