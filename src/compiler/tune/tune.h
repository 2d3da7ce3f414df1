#pragma once

// Times the providers of the calls that a compiled model makes: each distinct (op, types and attributes, range) of its
// nodes that more than one provider can run. A range is timed at its two ends.
//
// A provider is timed (kernel_timer.h) on the weight as a model would load it for that provider: in the provider's own
// packing if it has one, else plain. Rounds are interleaved, so that a disturbance of the machine affects all providers
// alike. Each run uses the next of several copies of the weight, so that it is read from memory as the weights of
// layers are. `reference` is not timed. An op that a fusion made also competes with its parts (parts_timer.h), under
// the name kParts: where the parts are faster, the fusion does not pay.

#include <span>

#include "compiler/pipeline.h"
#include "compiler/tune/tuning_database.h"
#include "compiler/tune/tuning_timer.h"

namespace weft {

struct TuneOptions {
  double budget_seconds = 60;
  TuningTimer* timer = nullptr;
  std::int64_t now = 0;  // seconds since 1970, for the entries
  // Whether a weight may be repacked for a provider; otherwise it keeps the layout of the calls.
  bool may_repack = true;
  // Whether generated code is also timed for an op that no fusion made.
  bool tries_generated = false;
};

struct TuneReport {
  std::vector<std::string> calls;  // keys of the database entries that are calls of this model
  int measured = 0;
  int known = 0;       // calls that were in the database
  int left = 0;        // calls that the budget did not reach
  int unrivalled = 0;  // calls with one provider only
};

// Adds the measurements that the database lacks. It stops when the budget is spent and the current call is finished.
// Measurements are compared with the default order, so ops for which the user named providers are left out, and so are
// calls that the Context's priorities already have measurements of. The priorities change meanwhile and are restored at
// the end. InternalError for records that are not lowered.
TuneReport tune(Context& context, std::span<const CompileRecord> records, TuningDatabase& database,
                const TuneOptions& options);

}  // namespace weft
