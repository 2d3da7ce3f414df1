#include "engine/open_model.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "builtin/models.h"
#include "engine/artifact.h"
#include "engine/open_checkpoint.h"

namespace weft {

OpenedModel open_model(const std::string& name, const std::string& checkpoint, Options options,
                       const EnvironmentLookup& environment,
                       const std::function<std::shared_ptr<Context>(Options)>& open_context) {
  if (!is_artifact(name)) {
    USER_CHECK(checkpoint.empty(), "[--checkpoint] is for artifacts, but {} is none", quote(name, 1000));
    const auto context = open_context(options);
    return {context, open_checkpoint(resolve_model(name, options, environment), options, make_model_registry())};
  }
  const Artifact artifact = Artifact::open(name);
  const Options given = options;
  artifact.take_options(options);
  OpenedModel opened{open_context(std::move(options)), artifact.open_checkpoint(checkpoint, given, environment)};
  artifact.check(*opened.context, opened.checkpoint);
  opened.context->stored_plans = artifact.plans();
  return opened;
}

}  // namespace weft
