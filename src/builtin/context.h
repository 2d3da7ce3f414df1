#pragma once

// Makes a Context with everything that this program brings: the ops of src/ops, the kernels of src/kernels, the default
// priorities of the device; and with what comes from outside the tree.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/effective_options.h"
#include "compiler/context.h"
#include "plugin/registrations.h"

namespace weft {

// Loads the plugins of the options, in their order, and joins what they and `registrations` bring. UserError for
// everything that does not fit, with its origin; then there is no Context at all.
// `target`, if given, are the instruction sets in the place of this host's, which may have fewer: in such a Context
// things are compiled, but nothing of it is run.
std::shared_ptr<Context> make_context(Options options, Registrations registrations = Registrations(),
                                      std::optional<CpuFeatures> target = {});

// A Context of what was asked for, as far as this program can.
struct OpenedContext {
  std::shared_ptr<Context> context;
  std::vector<OptionDifference> differences;
  // Sentences for whoever asked: other spellings of what was given, every difference, what has no effect.
  std::vector<std::string> notes;
};

// What the interfaces (command line, C) make of the options that their user gave, with the user's compile cache.
// UserError as make_context, and for the name of a pass that there is not.
OpenedContext open_context(Options requested, std::optional<CpuFeatures> target = {});

}  // namespace weft
