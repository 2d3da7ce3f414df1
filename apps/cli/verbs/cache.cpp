#include <algorithm>
#include <chrono>

#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "cache/cache_archive.h"
#include "cache/compile_cache.h"

namespace weft {
namespace {

struct CacheArguments {
  std::string hash;  // its first digits; "" for every entry
  std::string file;
  std::int64_t most_bytes = kDefaultCacheBytes;
  bool all = false;
  bool json = false;
};

CompileCache open_cache(VerbCall& call) {
  return CompileCache({.root = default_cache_root(call.environment, call.options.cache_root),
                       .warn = [&call](const std::string& warning) { call.err << "weft: " << warning << "\n"; }});
}

std::int64_t age_in_seconds(const CacheListing& entry) {
  using namespace std::chrono;
  const std::int64_t now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  return std::max<std::int64_t>(0, (now - entry.modified) / 1'000'000'000);
}

std::string age_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{} s", seconds);
  if (seconds < kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < kDay) return fmt::format("{} h", seconds / kHour);
  return fmt::format("{} d", seconds / kDay);
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

Json factors_json(const std::vector<CacheFactor>& factors) {
  Json list = Json::array();
  for (const CacheFactor& factor : factors) list.push_back({{"name", factor.name}, {"value", factor.value}});
  return list;
}

int list_entries(const CacheArguments& arguments, VerbCall& call) {
  const CompileCache cache = open_cache(call);
  std::int64_t bytes = 0;
  Json list = Json::array();
  std::string text;
  for (const CacheListing& entry : cache.list()) {
    bytes += entry.bytes;
    list.push_back({{"kind", entry.kind},
                    {"hash", entry.hash},
                    {"bytes", entry.bytes},
                    {"age_seconds", age_in_seconds(entry)},
                    {"factors", factors_json(entry.factors)},
                    {"problem", entry.problem.empty() ? Json() : Json(entry.problem)}});
    text += fmt::format("{:<10} {} {:>10} {:>7}  {}\n", entry.kind, entry.hash, bytes_text(entry.bytes),
                        age_text(age_in_seconds(entry)),
                        entry.problem.empty() ? fmt::format("{} factors", entry.factors.size()) : entry.problem);
  }
  if (arguments.json) {
    call.out << json_text(Json{{"root", cache.root()}, {"bytes", bytes}, {"entries", list}}, 2) << "\n";
  } else {
    call.out << text << fmt::format("{} entries, {} in {}\n", list.size(), bytes_text(bytes), cache.root());
  }
  return 0;
}

std::string value_text(const std::optional<std::string>& value) {
  return value ? quote(*value, 1000) : std::string("absent");
}

Json value_json(const std::optional<std::string>& value) { return value ? Json(*value) : Json(); }

std::string explanation_text(const CacheListing& entry, const std::optional<CacheNeighbour>& nearest) {
  std::string text = fmt::format("{} {}\n", entry.kind, entry.hash);
  if (!entry.problem.empty()) return text + "  " + entry.problem + "\n";
  for (const CacheFactor& factor : entry.factors)
    text += fmt::format("  {} = {}\n", quote(factor.name, 1000), quote(factor.value, 1000));
  if (!nearest) return text + "  there is no other entry of its kind\n";
  text += fmt::format("  nearest is {}: {} of {} factors are equal", nearest->hash, nearest->equal_factors,
                      entry.factors.size());
  if (const auto& difference = nearest->first_difference)
    text += fmt::format("; first to differ is {}: {} here, {} there", quote(difference->factor, 1000),
                        value_text(difference->wanted), value_text(difference->found));
  return text + "\n";
}

Json explanation_json(const CacheListing& entry, const std::optional<CacheNeighbour>& nearest) {
  Json first;
  if (nearest && nearest->first_difference)
    first = {{"factor", nearest->first_difference->factor},
             {"wanted", value_json(nearest->first_difference->wanted)},
             {"found", value_json(nearest->first_difference->found)}};
  return {{"kind", entry.kind},
          {"key", entry.hash},
          {"entry", entry.path},
          {"factors", factors_json(entry.factors)},
          {"problem", entry.problem.empty() ? Json() : Json(entry.problem)},
          {"nearest", nearest ? Json(nearest->hash) : Json()},
          {"first_difference", first}};
}

int explain_entries(const CacheArguments& arguments, VerbCall& call) {
  const CompileCache cache = open_cache(call);
  const std::vector<CacheListing> entries = cache.list();
  const std::string prefix = to_lower_ascii(arguments.hash);
  Json list = Json::array();
  std::string text;
  for (const CacheListing& entry : entries) {
    if (!entry.hash.starts_with(prefix)) continue;
    std::optional<CacheNeighbour> nearest;
    if (entry.problem.empty()) nearest = nearest_entry(CacheKey(entry.kind, entry.factors), entries, &entry);
    list.push_back(explanation_json(entry, nearest));
    text += explanation_text(entry, nearest);
  }
  USER_CHECK(!list.empty() || prefix.empty(), "[cache explain] no entry of {} begins with {}", quote(cache.root()),
             quote(arguments.hash));
  if (list.empty()) text = fmt::format("there is no entry in {}\n", cache.root());
  call.out << (arguments.json ? json_text(list, 2) + "\n" : text);
  return 0;
}

int verify_entries(const CacheArguments& arguments, VerbCall& call) {
  const CompileCache cache = open_cache(call);
  const std::vector<CacheListing> entries = cache.list(CompileCache::Read::everything);
  Json bad = Json::array();
  for (const CacheListing& entry : entries) {
    if (entry.problem.empty()) continue;
    bad.push_back({{"kind", entry.kind}, {"hash", entry.hash}, {"problem", entry.problem}});
    if (!arguments.json) call.out << entry.problem << "\n";
  }
  if (arguments.json) {
    call.out << json_text(Json{{"root", cache.root()}, {"entries", entries.size()}, {"bad", bad}}, 2) << "\n";
  } else {
    call.out << fmt::format("{} entries, {} bad\n", entries.size(), bad.size());
  }
  return bad.empty() ? 0 : 2;
}

int prune_entries(const CacheArguments& arguments, VerbCall& call) {
  CompileCache cache = open_cache(call);
  const CachePruned pruned = cache.prune(arguments.all ? 0 : arguments.most_bytes);
  if (arguments.json) {
    const Json report{{"entries", pruned.entries}, {"bytes", pruned.bytes}, {"temporary_files", pruned.temporary_files},
                      {"bad", pruned.bad},         {"left", pruned.left},   {"failures", pruned.failures}};
    call.out << json_text(report, 2) << "\n";
  } else {
    for (const std::string& problem : pruned.bad) call.out << "removed: " << problem << "\n";
    for (const std::string& problem : pruned.left) call.out << "left: " << problem << "\n";
    for (const std::string& failure : pruned.failures) call.out << "left: " << failure << "\n";
    call.out << fmt::format("removed {} entries and {} temporary files, {}\n", pruned.entries, pruned.temporary_files,
                            bytes_text(pruned.bytes));
  }
  return pruned.failures.empty() ? 0 : 2;
}

// Of an export or import.
int report_transfer(const CacheArguments& arguments, VerbCall& call, std::size_t entries,
                    const std::vector<std::string>& problems) {
  if (arguments.json) {
    const Json report{{"file", arguments.file}, {"entries", entries}, {"left_out", problems}};
    call.out << json_text(report, 2) << "\n";
  } else {
    for (const std::string& problem : problems) call.out << "left out: " << problem << "\n";
    call.out << fmt::format("{} entries, {} left out\n", entries, problems.size());
  }
  return problems.empty() ? 0 : 2;
}

int export_entries(const CacheArguments& arguments, VerbCall& call) {
  const CacheExport result = export_cache(open_cache(call), arguments.file);
  return report_transfer(arguments, call, result.entries, result.problems);
}

int import_entries(const CacheArguments& arguments, VerbCall& call) {
  CompileCache cache = open_cache(call);
  const CacheImport result = import_cache(cache, arguments.file);
  return report_transfer(arguments, call, result.entries, result.problems);
}

using CacheCommand = int (*)(const CacheArguments&, VerbCall&);

}  // namespace
}  // namespace weft

VERB(cache) {
  verbs.add(
      "cache",
      {"Manage the folder of compiled code: list, explain, verify, prune, export, import.",
       [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<CacheArguments>();
         auto chosen = std::make_shared<CacheCommand>(nullptr);
         const auto add = [&](const char* name, const char* summary, CacheCommand command) -> Flags& {
           Flags& verb = flags.verb(name, summary, [chosen, command] { *chosen = command; });
           verb.flag("--json", arguments->json, "Print JSON.");
           return verb;
         };
         add("list", "Print every entry: kind, hash, size, age.", list_entries);
         add("explain", "Print what entries were made from, and how each differs from its nearest.", explain_entries)
             .option("hash", arguments->hash, "Its first digits; every entry when not given.");
         add("verify", "Check each byte of every entry, and its name; fails when one is bad.", verify_entries);
         Flags& prune = add("prune", "Remove what verify calls bad, then entries not used for longest.", prune_entries);
         const auto take = [arguments](const std::string& text) {
           arguments->most_bytes = human_integer(text, "--to");
           USER_CHECK(arguments->most_bytes >= 0, "[--to] must be at least 0, but is {}", arguments->most_bytes);
         };
         prune.option("--to", take, "The size in bytes that may be left (4G).");
         prune.flag("--all", arguments->all, "Leave nothing.", {.excludes = {"--to"}});
         add("export", "Write all entries into one file.", export_entries)
             .option("file", arguments->file, "The archive, a zip file.", {.required = true});
         add("import", "Take the entries of a file that export wrote. They are code that this machine will run.",
             import_entries)
             .option("file", arguments->file, "The archive.", {.required = true});
         return [arguments, chosen, &call] { return (*chosen)(*arguments, call); };
       }});
}
