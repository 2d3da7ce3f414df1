#pragma once

// Plans in the compile cache. What is found there needs neither the passes nor LLVM: the Plans of a traced graph, and
// the machine code of the functions that they call.
//
// The key holds everything that the compiler reads: the traced graph, the ranges, the options that change code, who is
// to compute what, the device, and the build of this program, which stands for the passes and the kernels. No name is
// in it: a Plan that is found bears those of the graph that it was looked up for, whoever compiled it. What has no
// content that could be stated is not kept: with plugins, with patterns and passes from outside the tree, and where
// somebody wants to look at the way or stops on it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_key.h"
#include "compiler/pipeline.h"
#include "compiler/plan_bytes.h"

namespace weft {

// Nothing where Plans are not kept.
std::optional<CacheKey> plans_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                                  const PassRunnerOptions& options);

// Of the measurements at exact sizes, which are of one machine. Nothing where they are not kept.
std::optional<CacheKey> tuning_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges);

// compile_ranges, unless the cache of the Context has what it would give; then there are no records. What was compiled
// is stored. With stored Plans in the Context they come from there and from nowhere else: UserError, naming the factor
// and both values, where they were made from anything else. `key`, if given, gets the key that was looked up.
CompiledRanges find_or_compile(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                               const PassRunnerOptions& options, std::optional<CacheKey>* key = nullptr);

// One graph's Plans as they are kept outside of the cache, with the functions that they call.
struct StoredPlans {
  std::string graph;                   // its name
  std::vector<CacheFactor> made_from;  // besides the build, the device and the options, which all graphs share
  std::vector<std::string> functions;  // names of those that were generated
  std::vector<std::byte> bytes;
  CodeObjects objects = {};  // the functions' code, which the bytes name by its hash
};

// What find_or_compile takes Plans from instead of compiling.
struct PlanSource {
  std::string name;  // for messages
  std::vector<StoredPlans> graphs;
};

// `plans` are by range. UserError where Plans cannot be kept: with plugins, with patterns and passes from outside the
// tree, and with kernels of other libraries.
StoredPlans store_plans(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                        std::span<const Plan* const> plans);

// The objects that the bytes name. UserError where they are no stored Plans.
std::set<ContentHash> objects_named(const StoredPlans& stored);

// SizeTuning::bytes of what the stored Plans of a graph were tuned by; empty where they were not.
std::span<const std::byte> stored_tuning(const PlanSource& source, const std::string& graph);

// The options with the hash of a file's content in the place of its path, where the content changes code.
Options options_of_content(const Options& options);

// What became of a look-up, for reports.
struct CacheUse {
  bool enabled = false;  // whether these Plans are kept at all
  bool hit = false;
  std::string key;                                       // the hash; "" where they are not kept
  std::string entry;                                     // its file
  std::optional<CacheDifference> first_difference = {};  // on a miss, from the nearest entry that there was
};
CacheUse cache_use(const Context& context, const std::optional<CacheKey>& key, bool hit);

}  // namespace weft
