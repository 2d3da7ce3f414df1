#pragma once

// Times of the providers for the calls of models on one machine, as text that can be merged and copied to equal
// machines.
//
// One JSON object a line, in UTF-8: a header with the format's version, the fingerprint of the machine and the number
// of entries, then one entry for each (op, types and attributes, token range), sorted by key. Each line ends with a
// hash of the text before it, so that a truncated or edited line is rejected.
//
//   {"weft_tuning":1,"fingerprint":{"cpu":..,"host":..,"features":..,"threads":2,"versions":{..}},"entries":1,"check":..}
//   {"op":"linear","operands":["f32[s0, 576]","f32[960, 576]",null],"attributes":{},"weight":1,"range":[1,512],
//    "rows":[1,512],"measured":1764000000,"standard":"cpu","times":[{"provider":"cpu","packing":"f32x32",
//    "nanoseconds":[[..],[..]]},..],"order":["openblas","cpu"],"check":..}

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tune/tuning_timer.h"
#include "ir/op.h"
#include "kernels/select.h"

namespace weft {

// The properties of a machine that the times depend on.
struct Fingerprint {
  std::string cpu;       // the name that the processor reports
  std::string host;      // features of the processor; libraries detect them themselves
  std::string features;  // features in use
  std::int64_t threads = 1;
  std::map<std::string, std::string> versions;  // of weft and of each provider's library
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint fingerprint_of(const DeviceDescription& device);

// The name of the provider that runs an op's meaning; for an op that a fusion made, these are its parts.
inline constexpr const char* kParts = "native";

struct TunedTime {
  std::string provider;
  std::string packing;                                 // of the weight in the measurement; "" for a plain one
  std::vector<std::vector<std::int64_t>> nanoseconds;  // by size and round: the best call of the round
};

struct TuningEntry {
  std::string op;
  TunedCall call;
  int weight = -1;                 // the operand that some provider packs; -1 for none
  std::vector<std::int64_t> rows;  // the sizes: ends of the range; a single 0 where types do not depend on rows
  std::int64_t measured = 0;       // seconds since 1970
  std::string standard;            // the provider that is first in the default order
  std::vector<TunedTime> times;    // the standard provider first
  std::string key() const;
  const TunedTime* find(const std::string& provider) const;  // null where the provider was not timed
};

struct TuningDatabase {
  Fingerprint fingerprint;
  std::map<std::string, TuningEntry> entries;  // by key

  // Of two measurements of one call, the newer is kept; if they are equally old, the one whose line sorts last.
  void add(TuningEntry entry);
  std::string text() const;
};

// UserError, with `source` and the line, for text that is truncated, edited or of another version of the format.
TuningDatabase parse_tuning(std::string_view text, const std::string& source);
// As parse_tuning; also UserError when the file was made on a machine other than `own`.
TuningDatabase read_tuning(const std::string& path, const Fingerprint& own);
// UserError when their fingerprints differ.
TuningDatabase merge_tuning(const TuningDatabase& a, const TuningDatabase& b);

// The order of providers that one entry alone supports: a provider that is at least 10 % faster than the standard one
// in every round at every size goes before it; if there are several, only the fastest does.
std::vector<std::string> tuned_order(const std::string& standard, const std::vector<TunedTime>& times);

// The decision for an entry in view of all other entries.
struct TuningDecision {
  std::string provider;  // the provider that runs the call
  double speedup = 1;    // over the standard provider, at the size where it is least
  std::string reason;
};
// Decisions by key. A weight has one layout: a provider that needs a layout other than the standard provider's goes
// first only if, in all ranges and calls of such a weight, a provider with that layout does. Where eager mode cannot
// distinguish two calls whose decisions differ, both keep the default order.
std::map<std::string, TuningDecision> decide(const TuningDatabase& database);

// Adds the decisions to the priorities of one Context. Entries of ops that `ops` does not have are skipped.
void apply_tuning(const TuningDatabase& database, const OpTable& ops, PriorityLists& priorities);

}  // namespace weft
