#include "compiler/store/plan_store.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/build_id.h"
#include "base/byte_stream.h"
#include "base/files.h"
#include "base/text.h"
#include "codegen/compile_rows.h"
#include "compiler/functions/device_rows.h"
#include "compiler/pieces.h"
#include "compiler/warnings.h"
#include "ir/print.h"
#include "ir/print_call.h"
#include "kernels/provider.h"
#include "options/options_text.h"

namespace weft {
namespace {

constexpr std::size_t kMostTunedBytes = 64u << 20;

std::string priorities_text(const PriorityLists& priorities) {
  std::string text;
  for (const auto& [op, providers] : priorities.user()) text += fmt::format("{}={} ", op, fmt::join(providers, ","));
  return text;
}

// The binding names every field, so that a new field cannot be forgotten. Some are left out because they change no
// Plan: the name of the processor, the other features of the host, which of two equally shaped kernels is faster, and
// the number of multiprocessors, which a launch queries. An option records which GPU is used.
std::string device_text(const DeviceDescription& device) {
  const auto& [id, name, host, features, amx_problem, fast_bf16_dots, threads, fp8, compute_capability, multiprocessors,
               cublaslt] = device;
  std::string text = fmt::format("{} {} threads {}", cpu_features_text(features), threads, dtype_text(fp8));
  if (id.type != DeviceType::cpu) text += fmt::format(" sm_{} cublaslt {}", compute_capability, cublaslt);
  return text;
}

std::string ranges_text(std::span<const TokenRange> ranges) {
  std::vector<std::string> parts;
  for (const TokenRange& range : ranges) parts.push_back(fmt::format("{}-{}", range.lo, range.hi));
  return fmt::format("{}", fmt::join(parts, " "));
}

// The part of a graph that the compiler reads, without the names of values, graphs and weights. canonical() leaves out
// the layers too, but Plans contain them, so they are added.
std::string read_text(const Graph& graph) {
  std::string text = canonical(graph);
  for (const auto& [symbol, interval] : graph.bounds)
    text += fmt::format("{} in [{}, {}]\n", symbol, interval.lo, interval.hi);
  for (const auto& node : graph.nodes()) text += layer_of(*node) + "\n";
  return text;
}

using Counted = std::map<std::string, int>;

// "2 x a; b". A long text is cut and ends with a hash of all of it.
std::string counted_text(const Counted& counted) {
  constexpr std::size_t kLongest = 1000;
  std::vector<std::string> parts;
  for (const auto& [text, count] : counted) parts.push_back(count == 1 ? text : fmt::format("{} x {}", count, text));
  const std::string text = fmt::format("{}", fmt::join(parts, "; "));
  return text.size() <= kLongest ? text : fmt::format("{} ... {}", text.substr(0, kLongest), hash_bytes(text).hex());
}

// Factors that a user recognizes, so that a miss is reported by what changed: the types of the inputs, and for each op
// how often it occurs with which attributes.
std::vector<CacheFactor> told_factors(const Graph& graph) {
  Counted inputs;
  std::map<std::string, Counted> calls;  // by op
  for (const auto& input : graph.inputs()) ++inputs[input->meta.text()];
  for (const auto& node : graph.nodes()) {
    const std::vector<std::string> attributes = attribute_texts(node->op, node->attributes);
    ++calls[node->name][attributes.empty() ? "without attributes" : fmt::format("({})", fmt::join(attributes, ", "))];
  }
  std::vector<CacheFactor> factors{{"inputs", counted_text(inputs)}};
  for (const auto& [op, counted] : calls) factors.push_back({"op " + op, counted_text(counted)});
  return factors;
}

// The factors that come from the graph and the user's choices for it. The factor `graph` covers all of the graph.
std::vector<CacheFactor> graph_factors(const Graph& traced, const Context& context,
                                       std::span<const TokenRange> ranges) {
  std::vector<CacheFactor> factors{{"ranges", ranges_text(ranges)},
                                   {"priorities", priorities_text(context.priorities)}};
  for (CacheFactor& told : told_factors(traced)) factors.push_back(std::move(told));
  factors.push_back({"graph", hash_bytes(read_text(traced)).hex()});
  return factors;
}

// Kernels of other providers come from libraries, whose versions are in no key, or from plugins.
bool is_of_this_program(std::span<const Plan* const> plans) {
  const auto is_own = [](const PlanStep& step) {
    if (step.kernel->provider == "native") return true;
    const ProviderEntry* folder = folder_of(*step.kernel);
    return folder != nullptr && folder->version == nullptr;
  };
  return std::all_of(plans.begin(), plans.end(),
                     [&](const Plan* plan) { return std::all_of(plan->steps.begin(), plan->steps.end(), is_own); });
}

std::vector<const Plan*> plans_by_range(const CompiledRanges& compiled) {
  std::vector<const Plan*> plans;
  for (const auto& plan : compiled.plans) plans.push_back(plan.get());
  return plans;
}

// Whether everything that changes Plans can be described in a key.
bool has_known_content(const Context& context) {
  const Options& all = context.options;
  return context.passes.empty() && all.plugin.empty() && all.patterns.empty() && all.limit_rewrites.empty() &&
         all.eager_piece.empty() && all.skip_pass.empty() && !build_id().empty();
}

// Whether the user inspects the passes or stops after one of them.
bool looks_on_the_way(const Context& context, const PassRunnerOptions& options) {
  return !context.options.expect_fusions.empty() || !options.dump_folder.empty() || !options.print_after.empty() ||
         options.stop_after;
}

// Why Plans are neither looked up nor stored; "" where they are.
std::string reason_not_to_cache(const Context& context, const PassRunnerOptions& options) {
  if (!context.cache->enabled()) return "the compile cache is off";
  if (build_id().empty()) return "the program was linked without a build id";
  if (!has_known_content(context))
    return "--plugin, --patterns, --limit-rewrites, --eager-piece, --skip-pass or a pass from outside changes the "
           "plans";
  if (looks_on_the_way(context, options))
    return "--expect-fusions, --debug-dump-path, --print-ir-after or --compile-to looks at the passes";
  if (context.log.wants_compilation()) return "--logs prints what is compiled";
  return options.skip.empty() ? "" : "passes are skipped";
}

// Topic cache: the outcome of a look-up; with + also the factors of the key.
void log_cache(const Context& context, const std::string& graph, const std::optional<CacheKey>& key, bool hit) {
  const Log& log = context.log;
  if (!key || log.detail("cache") == Log::Detail::none) return;
  const CacheUse use = cache_use(context, key, hit);
  std::string line = fmt::format("{}: plans found, {}", graph, use.entry);
  if (!hit) {
    line = fmt::format("{}: plans compiled, {}", graph, use.entry);
    if (const auto& difference = use.first_difference) {
      line += fmt::format("; the nearest entry differs in {}: wanted {}, found {}", difference->factor,
                          difference->wanted.value_or("none"), difference->found.value_or("none"));
    } else {
      line += "; there is no entry to compare with";
    }
  }
  log.say("cache", Log::Detail::some, line);
  for (const CacheFactor& factor : key->factors())
    log.say("cache", Log::Detail::more,
            fmt::format("{}: {} is {}", graph, factor.name, factor.value.empty() ? "none" : factor.value));
}

std::vector<CacheFactor> content_factors(const Graph& traced, const Context& context,
                                         std::span<const TokenRange> ranges) {
  std::vector<CacheFactor> factors{{"build", build_id()},
                                   {"rows", generates_code(context) ? std::string(row_emitter_hash()) : "none"},
                                   {"device", device_text(context.device)}};
  // One factor for each option, so that a miss reports which option differs.
  for (auto& [name, value] : code_options(options_of_content(context.options)))
    factors.push_back({"--" + name, std::move(value)});
  if (const DeviceRows* rows = context.generated->device_rows())
    factors.push_back({"device_rows", fmt::format("{} by {}", rows->code_text(), rows->compiler_text())});
  // These follow the ranges. Each graph of a model has other ranges, and the nearest entry should be one with the same
  // ranges.
  std::vector<CacheFactor> all = graph_factors(traced, context, ranges);
  all.insert(all.begin() + 1, std::move_iterator(factors.begin()), std::move_iterator(factors.end()));
  return all;
}

// Stored Plans begin with the measurements that they were tuned by.
std::vector<std::byte> behind_tuning(const SizeTuning& tuning, std::span<const std::byte> plans) {
  const std::vector<std::byte> measured = tuning.measured.entries.empty() ? std::vector<std::byte>() : tuning.bytes();
  ByteWriter writer;
  writer.count(measured.size());
  writer.raw(measured);
  writer.raw(plans);
  return writer.take();
}

std::span<const std::byte> tuning_before(ByteReader& reader) { return reader.raw(reader.count()); }

// As plans_of_bytes, and an Error where there is not one Plan for each range.
std::vector<std::shared_ptr<const Plan>> plans_for(std::span<const TokenRange> ranges, std::span<const std::byte> bytes,
                                                   const CodeObjects& objects, const Graph& traced,
                                                   const Context& context) {
  std::vector<std::shared_ptr<const Plan>> plans = plans_of_bytes(bytes, objects, traced, context);
  USER_CHECK(plans.size() == ranges.size(), "there are {} for {} ranges", plans.size(), ranges.size());
  return plans;
}

CompiledRanges find_stored(const PlanSource& source, const Graph& traced, const Context& context,
                           std::vector<TokenRange> ranges, const PassRunnerOptions& options) {
  USER_CHECK(
      !looks_on_the_way(context, options),
      "[{}] is compiled already: --expect-fusions, --compile-to, --print-ir-after and --debug-dump-path want the "
      "model itself",
      source.name);
  const auto stored = std::find_if(source.graphs.begin(), source.graphs.end(),
                                   [&](const StoredPlans& graph) { return graph.graph == traced.name; });
  USER_CHECK(stored != source.graphs.end(), "[{}] has no plans of the graph {}", source.name, traced.name);
  const CacheKey wanted("plans", graph_factors(traced, context, ranges));
  if (const auto difference = first_difference(wanted, stored->made_from))
    fail_user("[{}] was compiled of the graph {} with {} {}, but here it is {}", source.name, traced.name,
              difference->factor, quote(difference->found.value_or("")), quote(difference->wanted.value_or("")));
  context.first_time_work->begin(FirstTime::load, fmt::format("the plans of {}", traced.name));
  try {
    ByteReader reader(stored->bytes);
    tuning_before(reader);
    auto plans = plans_for(ranges, reader.raw(reader.left()), stored->objects, traced, context);
    return {.ranges = std::move(ranges), .plans = std::move(plans)};
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    fail_user("[{}] the plans of {} are of no use: {}", source.name, traced.name, error.what());
  }
}

}  // namespace

Options options_of_content(const Options& options) {
  Options of_content = options;
  if (!options.tuned.empty()) of_content.tuned = hash_bytes(read_file(options.tuned, kMostTunedBytes)).hex();
  return of_content;
}

StoredPlans store_plans(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                        std::span<const Plan* const> plans) {
  USER_CHECK(has_known_content(context) && is_of_this_program(plans),
             "[plans] cannot be kept where they were made with plugins, with --patterns, --limit-rewrites, "
             "--eager-piece or --skip-pass, or with kernels of other libraries");
  const std::set<std::string> functions = functions_of(plans, *context.generated);
  PlanBytes kept = bytes_of_plans(plans, *context.generated);
  return {.graph = traced.name,
          .made_from = graph_factors(traced, context, ranges),
          .functions = {functions.begin(), functions.end()},
          .bytes = behind_tuning(context.size_tuning, kept.bytes),
          .objects = std::move(kept.objects)};
}

std::span<const std::byte> stored_tuning(const PlanSource& source, const std::string& graph) {
  for (const StoredPlans& stored : source.graphs) {
    if (stored.graph != graph) continue;
    ByteReader reader(stored.bytes);
    return tuning_before(reader);
  }
  return {};
}

std::set<ContentHash> objects_named(const StoredPlans& stored) {
  ByteReader reader(stored.bytes);
  tuning_before(reader);
  return objects_named(reader.raw(reader.left()));
}

std::optional<CacheKey> plans_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges,
                                  const PassRunnerOptions& options) {
  if (!reason_not_to_cache(context, options).empty()) return std::nullopt;
  std::vector<CacheFactor> factors = content_factors(traced, context, ranges);
  if (const std::string decided = context.size_tuning.decisions_text(); !decided.empty())
    factors.push_back({"tuning", hash_bytes(decided).hex()});
  return CacheKey("plans", std::move(factors));
}

std::optional<CacheKey> tuning_key(const Graph& traced, const Context& context, std::span<const TokenRange> ranges) {
  if (!context.cache->enabled() || !has_known_content(context)) return std::nullopt;
  std::vector<CacheFactor> factors = content_factors(traced, context, ranges);
  // Versions of libraries are left out, because each library would have to be opened to know its version.
  factors.push_back({"machine", fmt::format("{}, {}", context.device.name, cpu_features_text(context.device.host))});
  return CacheKey("tuning", std::move(factors));
}

CacheUse cache_use(const Context& context, const std::optional<CacheKey>& key, bool hit) {
  if (!key) return {};
  const std::string path = entry_folder(context.cache->root(), key->kind()) + "/" + entry_name(key->hash());
  CacheUse use{.enabled = true, .hit = hit, .key = key->hash().hex(), .entry = path};
  if (hit) return use;
  try {
    // Leave out what this process has stored: this graph's new entry and the entries of the model's other graphs.
    std::vector<CacheListing> entries = context.cache->list();
    std::erase_if(entries, [&](const CacheListing& entry) { return context.cache->has_stored(entry.hash); });
    if (const auto nearest = nearest_entry(*key, entries)) use.first_difference = nearest->first_difference;
  } catch (const Error&) {  // the folder cannot be read, so there is nothing to compare with
  }
  return use;
}

CompiledRanges find_or_compile(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                               const PassRunnerOptions& options, std::optional<CacheKey>* used_key) {
  if (context.stored_plans) return find_stored(*context.stored_plans, traced, context, std::move(ranges), options);
  check_required_code(context);
  warn_of_missing_compiler(context);
  const std::optional<CacheKey> key = plans_key(traced, context, ranges, options);
  if (used_key != nullptr) *used_key = key;
  if (!key) {
    context.log.say(
        "cache", Log::Detail::some,
        fmt::format("{}: plans compiled, not cached: {}", traced.name, reason_not_to_cache(context, options)));
    return compile_ranges(traced, context, std::move(ranges), options);
  }
  if (const auto entry = context.cache->find(*key)) {
    context.first_time_work->begin(FirstTime::load, fmt::format("the plans of {}", traced.name));
    try {
      const PlanBytes kept = parted(entry->payload());
      CompiledRanges found{.ranges = ranges, .plans = plans_for(ranges, kept.bytes, kept.objects, traced, context)};
      log_cache(context, traced.name, key, true);
      return found;
    } catch (const Error& error) {
      warn(context.log,
           fmt::format("the plans of {} in the compile cache are of no use: {}", traced.name, error.what()));
    }
  }
  log_cache(context, traced.name, key, false);
  const bool generates = generates_code(context);
  CompiledRanges compiled = compile_ranges(traced, context, std::move(ranges), options);
  const std::vector<const Plan*> plans = plans_by_range(compiled);
  // No one can use Plans without the code that their key promises.
  if (generates == generates_code(context) && !context.generated->lacks_images() && is_of_this_program(plans))
    context.cache->store(*key, joined(bytes_of_plans(plans, *context.generated)));
  return compiled;
}

}  // namespace weft
