#include "server/unknown_fields.h"

#include <fmt/format.h>

#include "base/text.h"

namespace weft {
namespace {

// Clients choose the names, so the set must have an end.
constexpr std::size_t kMostNoted = 1000;

}  // namespace

void UnknownFields::note(const ApiRequest& request) {
  for (const std::string& name : request.unknown) {
    {
      const std::lock_guard lock(mutex_);
      if (noted_.size() >= kMostNoted || !noted_.insert(name).second) continue;
    }
    log_(fmt::format("[server] the field {} of requests is unknown and ignored{}", quote(name),
                     suggestion(name, field_names(request.endpoint))));
  }
}

}  // namespace weft
