#pragma once

// Makes a Context with everything that this program brings: the ops of src/ops, the kernels of src/kernels, the default
// priorities of the device; and with what comes from outside the tree.

#include <memory>

#include "compiler/context.h"
#include "plugin/registrations.h"

namespace weft {

// Loads the plugins of the options, in their order, and joins what they and `registrations` bring. UserError for
// everything that does not fit, with its origin; then there is no Context at all.
std::shared_ptr<Context> make_context(Options options, Registrations registrations = Registrations());

}  // namespace weft
