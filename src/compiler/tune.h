#pragma once

// Times the providers of the calls that a compiled model makes: each distinct (op, types and attributes, range) of its
// nodes that more than one provider can run. A range stands for its two ends.
//
// A provider is timed (kernel_timer.h) on the weight as it would be loaded for it: packed by the provider's own
// packing, else plain. Rounds are interleaved, so that what disturbs the machine disturbs all providers alike, and
// weights take turns so that they come from memory, as those of layers do. `reference` is left out. An op that a fusion
// gave has its parts as a rival (parts_timer.h), under the name kParts: where they win, the fusion does not pay.

#include <span>

#include "compiler/pipeline.h"
#include "compiler/tuning_database.h"
#include "compiler/tuning_timer.h"

namespace weft {

struct TuneOptions {
  double budget_seconds = 60;
  TuningTimer* timer = nullptr;
  std::int64_t now = 0;  // seconds since 1970, for the entries
  // Whether a weight may be laid out anew for a provider; otherwise it stays as the calls have it.
  bool may_repack = true;
  // Whether generated code is tried beside the kernel of an op that no fusion gave.
  bool tries_generated = false;
};

struct TuneReport {
  std::vector<std::string> calls;  // keys of all entries of the database that are calls of this model
  int measured = 0;
  int known = 0;       // were in the database
  int left = 0;        // the budget did not reach
  int unrivalled = 0;  // one provider only
};

// Adds what the database lacks. Ends after the budget and the call that was begun within it. What is measured is
// compared with the default order: ops that the user named providers for are left out, and so are calls that the
// Context's priorities hold measurements of. The priorities change in between, and are as before at the end.
// InternalError for records that are not lowered.
TuneReport tune(Context& context, std::span<const CompileRecord> records, TuningDatabase& database,
                const TuneOptions& options);

}  // namespace weft
