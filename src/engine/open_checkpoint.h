#pragma once

// Opens the checkpoint that an engine loads, as --load-format requests.

#include <string>

#include "io/checkpoint.h"
#include "models/model.h"
#include "options/options.h"

namespace weft {

// Throws the UserErrors of Checkpoint::open; for a dummy checkpoint also when its architecture is not among `models`.
Checkpoint open_checkpoint(const std::string& path, const Options& options, const ModelRegistry& models);

}  // namespace weft
