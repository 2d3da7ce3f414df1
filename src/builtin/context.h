#pragma once

// Makes a Context with everything that this program brings: the ops of src/ops, the kernels of src/kernels, the default
// priorities of the device.

#include <memory>

#include "compiler/context.h"

namespace weft {

std::shared_ptr<Context> make_context(Options options);

}  // namespace weft
