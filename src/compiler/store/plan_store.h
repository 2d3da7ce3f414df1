#pragma once

// Plans in the compile cache. A hit needs neither the passes nor LLVM: an entry has the Plans of a traced graph and the
// machine code of the functions that they call.
//
// The key contains everything that the compiler reads: the traced graph, the ranges, the options that change code, the
// priorities of providers, the device, and the build of this program, which covers the passes and the kernels. It
// contains no names: a cached Plan gets the names of the graph that it was looked up for. Plans are not cached where an
// input of the compiler has no content to hash (plugins, patterns and passes from outside the tree), nor where the
// options dump, print or stop the pipeline.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_key.h"
#include "compiler/pipeline.h"
#include "compiler/store/plan_bytes.h"

namespace weft {

// nullopt where Plans are not cached.
std::optional<CacheKey> plans_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                                  const PassRunnerOptions& options);

// The key of the measurements at exact sizes, which are valid for one machine. nullopt where they are not cached.
std::optional<CacheKey> tuning_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges);

// Returns cached Plans, without records, or else calls compile_ranges and stores the result. With stored Plans in the
// Context, only those are used: UserError, with the factor and both values, where they were made from anything else.
// `key`, if given, receives the key that was looked up.
CompiledRanges find_or_compile(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                               const PassRunnerOptions& options, std::optional<CacheKey>* key = nullptr);

// One graph's Plans as stored outside the cache, with the functions that they call.
struct StoredPlans {
  std::string graph;                   // its name
  std::vector<CacheFactor> made_from;  // without the build, the device and the options, which all graphs share
  std::vector<std::string> functions;  // names of the generated functions
  std::vector<std::byte> bytes;
  CodeObjects objects = {};  // the functions' code, which the bytes name by its hash
};

// Stored Plans, which find_or_compile uses instead of compiling.
struct PlanSource {
  std::string name;  // for messages
  std::vector<StoredPlans> graphs;
};

// `plans` are by range. UserError where Plans cannot be stored: with plugins, with patterns and passes from outside the
// tree, and with kernels of other libraries.
StoredPlans store_plans(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                        std::span<const Plan* const> plans);

// The hashes of the objects that the bytes name. UserError where the bytes are not stored Plans.
std::set<ContentHash> objects_named(const StoredPlans& stored);

// The SizeTuning::bytes that the stored Plans of a graph were tuned with; empty where they were not tuned.
std::span<const std::byte> stored_tuning(const PlanSource& source, const std::string& graph);

// The options, with the hash of a file's content instead of its path where the content changes code.
Options options_of_content(const Options& options);

// The outcome of a look-up, for reports.
struct CacheUse {
  bool enabled = false;  // whether these Plans are cached at all
  bool hit = false;
  std::string key;                                       // the hash; "" where Plans are not cached
  std::string entry;                                     // its file
  std::optional<CacheDifference> first_difference = {};  // on a miss: from the nearest entry in the cache
};
CacheUse cache_use(const Context& context, const std::optional<CacheKey>& key, bool hit);

}  // namespace weft
