#include "compiler/tune/size_tuning.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include <fmt/ranges.h>

#include "base/byte_stream.h"
#include "base/error.h"
#include "codegen/row_tuning.h"
#include "compiler/pieces.h"
#include "compiler/store/plan_store.h"
#include "compiler/token_ranges.h"
#include "compiler/tune/tune.h"
#include "compiler/tune/tune_functions.h"
#include "compiler/warnings.h"

namespace weft {
namespace {

// In the first round, calls may take half of the time that is left, and functions take the rest. The second round is
// for calls that the first one did not reach.
constexpr double kSharesOfCalls[] = {0.5, 1};

std::vector<TokenRange> exact_sizes(std::span<const TokenRange> ranges) {
  std::vector<TokenRange> sizes;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (range_around(ranges, i) != nullptr) sizes.push_back(ranges[i]);
  return sizes;
}

// Applies the measurements to the choices and functions, in addition to earlier measurements for another graph.
void apply(const SizeTuning& tuning, Context& context) {
  SizeTuning all = context.size_tuning;
  all.measured.fingerprint = tuning.measured.fingerprint;
  for (const auto& [key, entry] : tuning.measured.entries) all.measured.entries[key] = entry;
  all.seconds += tuning.seconds;
  all.left += tuning.left;
  all.budget = context.options.tuning_budget;
  all.was_found = tuning.was_found;
  all.functions.clear();
  for (const auto& [key, decision] : decide(all.measured)) {
    const TuningEntry& entry = all.measured.entries.at(key);
    if (is_function(entry) && decision.provider != entry.standard)
      all.functions[entry.call.range.lo][entry.op] = parse_row_tuning(decision.provider);
  }
  apply_tuning(tuning.measured, context.ops, context.priorities);
  context.size_tuning = std::move(all);
}

// The origin that names the op of the piece of which a node is a part.
constexpr const char* kPartOf = "part_of";

// Must be called before the ops are replaced by their meanings.
void note_ops(const Graph& split) {
  for (const auto& piece : split.pieces)
    for (const auto& node : piece->nodes()) node->origin.emplace_back(kPartOf, node->name);
}

// The ops that a function computes, in their order.
std::string computed_by(const RowRegion& region) {
  std::vector<std::string> ops;
  for (const Node* node : region.nodes)
    for (const auto& [name, op] : node->origin)
      if (name == kPartOf && std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
  return fmt::format("{}", fmt::join(ops, " "));
}

class SizeTuner {
 public:
  SizeTuner(const Graph& traced, Context& context, std::vector<TokenRange> sizes, TuningTimer& timer)
      : traced_(traced), context_(context), sizes_(std::move(sizes)), timer_(timer), begin_(timer.now()) {}

  SizeTuning run() {
    TuningDatabase& database = tuning_.measured;
    database.fingerprint = fingerprint_of(context_.device);
    for (const double share : kSharesOfCalls) {
      const int calls_left = context_.options.batch_invariant ? 0 : tune_calls(share);
      const int functions_left = generates_code(context_) ? tune_all_functions() : 0;
      tuning_.left = calls_left + functions_left;
      if (calls_left == 0 || left() <= 0) break;
    }
    tuning_.seconds = timer_.now() - begin_;
    return std::move(tuning_);
  }

 private:
  double left() const { return begin_ + static_cast<double>(context_.options.tuning_budget) - timer_.now(); }

  TuneOptions options(double seconds) const {
    return {.budget_seconds = seconds,
            .timer = &timer_,
            .now = static_cast<std::int64_t>(std::time(nullptr)),
            .may_repack = false,
            .tries_generated = true};
  }

  std::vector<CompileRecord> lowered() const {
    return compile_ranges(traced_, context_, sizes_, {.skip = context_.options.skip_pass, .stop_after = Stage::split})
        .records;
  }

  // Returns how many calls were not reached; the function below likewise.
  int tune_calls(double share) {
    const std::vector<CompileRecord> records = lowered();
    return tune(context_, records, tuning_.measured, options(share * left())).left;
  }

  int tune_all_functions() {
    // The functions are those of the calls' new choices. The Context gets its old priorities back afterwards.
    const PriorityLists before = context_.priorities;
    apply_tuning(tuning_.measured, context_.ops, context_.priorities);
    std::vector<PieceSchedules> schedules;
    const std::vector<CompileRecord> records = lowered();
    schedules.reserve(records.size());
    std::vector<FunctionAtSize> functions;
    for (const CompileRecord& record : records) {
      note_ops(*record.split);
      PassContext passes = pass_context(context_, record.range);
      schedules.push_back(schedule_pieces(*record.split, passes, *context_.threads));
      for (const auto& [name, code] : schedules.back())
        for (const RowRegion& region : code.schedule.regions)
          functions.push_back({&region.program, record.range.lo, computed_by(region)});
    }
    context_.priorities = before;
    return tune_functions(context_, functions, tuning_.measured, options(left())).left;
  }

  const Graph& traced_;
  Context& context_;
  std::vector<TokenRange> sizes_;
  TuningTimer& timer_;
  double begin_;
  SizeTuning tuning_;
};

bool tell_stored(const PlanSource& source, const std::string& graph, Context& context) {
  try {
    const std::span<const std::byte> stored = stored_tuning(source, graph);
    if (!stored.empty()) apply(SizeTuning::from_bytes(stored), context);
    return !stored.empty();
  } catch (const UserError& error) {
    fail_user("[{}] the tuning of {} is of no use: {}", source.name, graph, error.what());
  }
}

bool find_kept(const std::optional<CacheKey>& key, Context& context) {
  if (!key) return false;
  const auto entry = context.cache->find(*key);
  if (!entry) return false;
  try {
    apply(SizeTuning::from_bytes(entry->payload()), context);
    return true;
  } catch (const Error& error) {
    warn(context.log, fmt::format("the tuning of exact sizes in the compile cache is of no use: {}", error.what()));
    return false;
  }
}

}  // namespace

const std::map<std::string, RowTuning>& SizeTuning::functions_at(TokenRange range) const {
  static const std::map<std::string, RowTuning> none;
  const auto found = range.lo == range.hi ? functions.find(range.lo) : functions.end();
  return found == functions.end() ? none : found->second;
}

RowProgram SizeTuning::tuned(const RowProgram& program, TokenRange range) const {
  const std::map<std::string, RowTuning>& tunings = functions_at(range);
  if (tunings.empty()) return program;
  const auto found = tunings.find(program.name());
  if (found == tunings.end()) return program;
  return tuned_program(program, found->second).value_or(program);
}

std::string SizeTuning::decisions_text() const {
  std::string text;
  for (const auto& [key, decision] : decide(measured))
    if (decision.provider != measured.entries.at(key).standard) text += fmt::format("{}: {}\n", key, decision.provider);
  return text;
}

std::vector<std::byte> SizeTuning::bytes() const {
  ByteWriter writer;
  writer.real(seconds);
  writer.number(std::int32_t{left});
  writer.text(measured.text());
  return writer.take();
}

SizeTuning SizeTuning::from_bytes(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  SizeTuning tuning{.was_found = true};
  tuning.seconds = reader.real();
  tuning.left = reader.number<std::int32_t>();
  tuning.measured = parse_tuning(reader.text(), "the tuning of exact sizes");
  return tuning;
}

bool tune_sizes(const Graph& traced, Context& context, std::span<const TokenRange> ranges) {
  const Options& options = context.options;
  std::vector<TokenRange> sizes = exact_sizes(ranges);
  if (options.tuning_budget == 0 || sizes.empty() || options.compile_to != "plan" || !context.groups.all().empty())
    return false;
  USER_CHECK(context.stream_device == nullptr,
             "[--tuning-budget] measures calls by the host's clock, which does not measure what {} does later: wanted "
             "--device cpu",
             device_text(context.device.id));
  if (context.stored_plans) return tell_stored(*context.stored_plans, traced.name, context);
  const std::optional<CacheKey> key = tuning_key(traced, context, ranges);
  if (find_kept(key, context)) return true;
  TuningTimer machine;
  TuningTimer& timer = context.tuning_timer ? *context.tuning_timer : machine;
  const SizeTuning tuning = SizeTuner(traced, context, std::move(sizes), timer).run();
  if (key) context.cache->store(*key, tuning.bytes());
  apply(tuning, context);
  return true;
}

}  // namespace weft
