#pragma once

// Makes a Context with everything in this program (the ops of src/ops, the kernels of src/kernels, the default
// priorities of the device) and with additions from outside the tree.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "options/effective_options.h"
#include "plugin/registrations.h"

namespace weft {

// Loads the plugins of the options, in their order, and joins what they and `registrations` add. UserError, with its
// origin, for anything that does not fit; then no Context is made. `target`, if given, replaces this host's instruction
// sets; the host may have fewer. Such a Context only compiles; it runs nothing. A sentence on what each pattern from
// outside was tried on is added to `notes`, if given.
std::shared_ptr<Context> make_context(Options options, Registrations registrations = Registrations(),
                                      std::optional<CpuFeatures> target = {},
                                      std::vector<std::string>* notes = nullptr);

// A Context for the requested options, as far as this program supports them.
struct OpenedContext {
  std::shared_ptr<Context> context;
  std::vector<OptionDifference> differences;
  // Sentences for the user: other spellings of the given options, every difference, options without effect, and what
  // each pattern from outside was tried on.
  std::vector<std::string> notes;
};

// Opens a Context from the options that a user gave to an interface (command line, C), with the user's compile cache.
// UserError as for make_context, and for an unknown pass name.
OpenedContext open_context(Options requested, std::optional<CpuFeatures> target = {});

}  // namespace weft
