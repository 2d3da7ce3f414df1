#pragma once

// The differences between an exact size and the range that would otherwise run it, for `weft explain`.

#include <string>
#include <vector>

#include "base/json.h"
#include "compiler/pipeline.h"
#include "compiler/tune/size_tuning.h"

namespace weft {

struct SizeDifference {
  std::string what;           // the op, or the generated function
  std::string computes = {};  // of a function: the ops
  std::string here, there;    // "12 cpu, 48 native" or "unroll=2"; "none" if the op is not in the graph
  std::string reason = {};    // "tuned: 12.3 us against 15.1 us of cpu"; "" if there is none
};

struct SizeReport {
  std::string graph;
  TokenRange size, range;
  int timed = 0;  // calls and functions measured at this size
  bool shares_plan = false;
  std::vector<SizeDifference> differences = {};
};

// One report for each exact size, in the order of the records.
std::vector<SizeReport> size_reports(const std::vector<CompileRecord>& records, const SizeTuning& tuning);

// The reports as text and as JSON; "" and null if there is no exact size.
std::string sizes_text(const std::vector<CompileRecord>& records, const SizeTuning& tuning);
Json sizes_json(const std::vector<CompileRecord>& records, const SizeTuning& tuning);

}  // namespace weft
