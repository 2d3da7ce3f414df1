#pragma once

// What providers take for the calls of models on one machine, as a text that is merged and carried to equal machines.
//
// One JSON object a line, in UTF-8: a header with the format's version, the fingerprint of the machine and the count of
// the entries, then one entry for each (op, types and attributes, token range), in the order of their keys. A line ends
// with the hash of what stands before it, so nothing is read that was cut short or edited.
//
//   {"weft_tuning":1,"fingerprint":{"cpu":..,"host":..,"features":..,"threads":2,"versions":{..}},"entries":1,"check":..}
//   {"op":"linear","operands":["f32[s0, 576]","f32[960, 576]",null],"attributes":{},"weight":1,"range":[1,512],
//    "rows":[1,512],"measured":1764000000,"standard":"cpu","times":[{"provider":"cpu","packing":"f32x32",
//    "nanoseconds":[[..],[..]]},..],"order":["openblas","cpu"],"check":..}

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tuning_timer.h"
#include "ir/op.h"
#include "kernels/select.h"

namespace weft {

// What the times depend on.
struct Fingerprint {
  std::string cpu;       // the processor's own name
  std::string host;      // features it has; libraries look for themselves
  std::string features;  // features in use
  std::int64_t threads = 1;
  std::map<std::string, std::string> versions;  // of weft and of each provider's library
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint fingerprint_of(const DeviceDescription& device);

// The provider that stands for an op's meaning: of an op that a fusion gave, its parts.
inline constexpr const char* kParts = "native";

struct TunedTime {
  std::string provider;
  std::string packing;                                 // of the weight it was timed on; "" for a plain one
  std::vector<std::vector<std::int64_t>> nanoseconds;  // by size and round: the best call of the round
};

struct TuningEntry {
  std::string op;
  TunedCall call;
  int weight = -1;                 // the operand that is packed for some provider; -1 for none
  std::vector<std::int64_t> rows;  // the sizes: ends of the range; one 0 where types do not depend on rows
  std::int64_t measured = 0;       // seconds since 1970
  std::string standard;            // the provider that the default order chooses
  std::vector<TunedTime> times;    // the standard provider first
  std::string key() const;
  const TunedTime* find(const std::string& provider) const;  // null where it was not timed
};

struct TuningDatabase {
  Fingerprint fingerprint;
  std::map<std::string, TuningEntry> entries;  // by key

  // Of two measurements of one call the newer stays; of equally old ones that whose line sorts last.
  void add(TuningEntry entry);
  std::string text() const;
};

// UserError, naming `source` and the line, for text that is cut short, edited or of another version of the format.
TuningDatabase parse_tuning(std::string_view text, const std::string& source);
// UserError, besides those, when the file was made on another machine than `own`.
TuningDatabase read_tuning(const std::string& path, const Fingerprint& own);
// UserError when their fingerprints differ.
TuningDatabase merge_tuning(const TuningDatabase& a, const TuningDatabase& b);

// What an entry says by itself: a provider that is at least 10 % faster than the standard one in every round at every
// size comes before it, the fastest of several.
std::vector<std::string> tuned_order(const std::string& standard, const std::vector<TunedTime>& times);

// What becomes of an entry beside all others.
struct TuningDecision {
  std::string provider;  // that runs the call
  double speedup = 1;    // against the standard one, at the size where it is least
  std::string reason;
};
// By key. A weight has one layout: a provider that wants another than the standard one comes first only where one with
// that layout does in all ranges and calls of such a weight. Where eager mode could not tell two calls apart, and they
// would come out differently, both keep the default order.
std::map<std::string, TuningDecision> decide(const TuningDatabase& database);

// Tells the priorities of one Context. Entries of ops that it does not have are left out.
void apply_tuning(const TuningDatabase& database, const OpTable& ops, PriorityLists& priorities);

}  // namespace weft
