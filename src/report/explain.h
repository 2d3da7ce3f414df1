#pragma once

// What the compiler did with one model, and why. `weft explain` prints one Explanation as text and as JSON.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "compiler/functions/device_functions.h"
#include "compiler/pipeline.h"
#include "compiler/run/guard_evaluation.h"
#include "compiler/store/plan_store.h"
#include "options/effective_options.h"
#include "report/start_times.h"
#include "runtime/replay_report.h"

namespace weft {

struct Explanation {
  std::string version;
  std::string model;
  Options options;  // effective
  std::vector<OptionDifference> differences;
  std::vector<CompileRecord> records;  // by graph and range; empty in eager mode
  struct {
    std::int64_t weights = 0;              // as loaded: packed, merged and mapped
    std::int64_t activations_planned = 0;  // arenas, as planned for the largest step
    // The part of them that the largest executed step used, in pages; empty if no step ran.
    std::optional<std::int64_t> activations_measured = {};
    std::int64_t kv_cache = 0;                           // pages for one sequence of the longest length
    std::optional<std::int64_t> kv_cache_measured = {};  // likewise, of these pages
  } memory;                                              // bytes
  StartTimes times;
  std::optional<DeviceFunctions> device_functions;  // GeneratedKernels::device_functions
  CacheUse cache;
  ReplayReport replay;
  SizeTuning tuning;                // of exact sizes
  std::vector<GuardReport> guards;  // with --evaluate-guards
};

// Keys are stable, new ones may be added:
//   weft model options passes steps nodes written_out clones pieces ranges sizes memory device_functions cache replay
//   guards timing_ms compile_ms
// `nodes` has each op that runs once, `written_out` each op that was replaced by its meaning.
Json explain_json(const Explanation& explanation);

// The same as text for people. What is the same in all layers is printed on one line.
std::string explain_text(const Explanation& explanation);

}  // namespace weft
