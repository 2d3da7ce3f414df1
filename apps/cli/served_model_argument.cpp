#include "apps/cli/served_model_argument.h"

#include "base/error.h"

namespace weft {

void ServedModelArgument::declare(Flags& flags) {
  model.declare_to_run(flags);
  flags.option("--served-model-name", names,
               "The model's name for clients, instead of MODEL; may be given several times.");
  chat_template.declare(flags);
  declare_generation_config(generation_config, flags);
}

ServedModelSettings ServedModelArgument::settings() const {
  generation_config.check();
  for (const std::string& name : names) USER_CHECK(!name.empty(), "[--served-model-name] a name must not be empty");
  return {.names = names.empty() ? std::vector<std::string>{model.name} : names,
          .root = model.name,
          .chat_template = chat_template.given,
          .template_arguments = chat_template.arguments(),
          .generation_config = generation_config};
}

}  // namespace weft
