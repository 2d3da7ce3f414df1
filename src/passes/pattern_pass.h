#pragma once

// Fusions: passes that are patterns and nothing else. A file of src/passes/fusion/ defines the patterns of one:
//
//   PATTERNS(add_rms_norm) {
//     PatternDefinition pattern("add_rms_norm", patterns.ops());
//     ...
//     patterns.add(std::move(pattern));
//   }

#include <map>
#include <string_view>

#include "ir/pattern_definition.h"
#include "passes/pass.h"

namespace weft {

// The fusion of the patterns that a user brings.
inline constexpr const char* kCustomFusion = "custom";

// The patterns of one fusion as they are defined.
class PatternList {
 public:
  PatternList(std::string fusion, const OpTable& ops, DType fp8, std::vector<FusionPattern>& into)
      : fusion_(std::move(fusion)), ops_(ops), fp8_(fp8), into_(into) {}
  const std::string& fusion() const { return fusion_; }
  const OpTable& ops() const { return ops_; }
  DType fp8() const { return fp8_; }  // of the device
  // Of those added from here on: they are looked for only where this gives no reason against it.
  void only_where(std::function<std::optional<std::string>(const PassContext&)> why_not) {
    why_not_ = std::move(why_not);
  }
  // InternalError when the pattern breaks a rule, or its name is taken.
  void add(PatternDefinition pattern);

 private:
  std::string fusion_;
  const OpTable& ops_;
  DType fp8_;
  std::function<std::optional<std::string>(const PassContext&)> why_not_;
  std::vector<FusionPattern>& into_;
};

// One row per file of src/passes/fusion/, made by the build.
struct PatternEntry {
  const char* fusion;
  void (*define)(PatternList&);
};
std::span<const PatternEntry> pattern_table();

// All of pattern_table(), in its order, for a device with this fp8.
std::vector<FusionPattern> make_pattern_table(const OpTable& ops, DType fp8);

// Those of a name: one pattern, or all of a fusion; all of them for "". UserError with the nearest known name.
std::vector<const Pattern*> patterns_named(std::span<const FusionPattern> patterns, const std::string& name);

// "act_quant=30", as `option` takes it, which takes `more` besides. UserError for anything else, and for a count that
// is not in [0, 1000000].
std::pair<std::string, std::int64_t> parse_fusion_count(const std::string& text, const std::string& option,
                                                        const std::string& more = "");

// The reason of a match that --limit-rewrites left as it is.
inline constexpr std::string_view kHeldBack = "--limit-rewrites";

// What --limit-rewrites says of each fusion. UserError for what is no NAME=COUNT, and for an unknown name.
std::map<std::string, std::int64_t> rewrite_limits(std::span<const FusionPattern> patterns, const CodeOptions& options);

// The pass that applies the patterns of a fusion, unless the option is false or they say why not; without patterns it
// changes nothing. A match stays as it is, with the reason among the near misses, where no kernel computes what would
// stand there, where the user named who computes a part of it, where the graph is cut at a part, but not at the whole,
// and where it does not pay: measurements say so, or, without any, the bytes and instructions it would take
// (passes/profit.h).
std::function<PassResult(Graph&, PassContext&)> pattern_pass(std::string fusion,
                                                             OptionalFlag CodeOptions::*enabled = nullptr);

}  // namespace weft

// Defines the fusion of src/passes/fusion/<name>.cpp.
#define PATTERNS(name)                                \
  namespace weft {                                    \
  void define_patterns_##name(PatternList& patterns); \
  }                                                   \
  void weft::define_patterns_##name(PatternList& patterns)
