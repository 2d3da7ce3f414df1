#pragma once

// The flags of verbs that answer requests: the model, its names for clients, its chat template, its defaults of
// sampling and what is in all answers.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/session.h"
#include "apps/cli/vllm_flags.h"
#include "server/served_model.h"

namespace weft {

struct ServedModelArgument {
  ModelArgument model;
  TemplateArgument chat_template;
  PoolingArgument pooling;
  SamplingArguments defaults;  // of requests
  ServedModelSettings given;   // without what the arguments above have
  VllmFlags vllm{VllmCommand::serve};

  void declare(Flags& flags);
  // UserError for values that are wrong.
  ServedModelSettings settings() const;

 private:
  void declare_answers(Flags& flags);
};

}  // namespace weft
