#pragma once

// The checkpoint that an engine loads, as --load-format asks for it.

#include <string>

#include "base/options.h"
#include "io/checkpoint.h"
#include "models/model.h"

namespace weft {

// UserErrors as those of Checkpoint::open; of a dummy one also for an architecture that is not among `models`.
Checkpoint open_checkpoint(const std::string& path, const Options& options, const ModelRegistry& models);

}  // namespace weft
