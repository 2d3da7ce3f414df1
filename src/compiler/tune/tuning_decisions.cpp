// Makes decisions from measurements: tuned_order, decide and apply_tuning of compiler/tune/tuning_database.h.

#include <algorithm>

#include <fmt/format.h>

#include "compiler/tune/tuning_database.h"

namespace weft {
namespace {

std::int64_t median(std::vector<std::int64_t> rounds) {
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

bool beats(const TunedTime& time, const TunedTime& standard) {
  for (std::size_t size = 0; size < standard.nanoseconds.size(); ++size)
    for (std::size_t round = 0; round < kTuningRounds; ++round)
      if (11 * time.nanoseconds[size][round] > 10 * standard.nanoseconds[size][round]) return false;
  return true;
}

double speedup_of(const TunedTime& time, const TunedTime& standard) {
  double least = 1e9;
  for (std::size_t size = 0; size < standard.nanoseconds.size(); ++size)
    least = std::min(least, static_cast<double>(median(standard.nanoseconds[size])) /
                                static_cast<double>(std::max<std::int64_t>(1, median(time.nanoseconds[size]))));
  return least;
}

// The fastest of those that `may_win` and beat the standard; null if there is none.
template <class MayWin>
const TunedTime* winner_of(const std::vector<TunedTime>& times, MayWin&& may_win) {
  const TunedTime* best = nullptr;
  for (const TunedTime& time : times)
    if (may_win(time) && beats(time, times[0]) &&
        (best == nullptr || speedup_of(time, times[0]) > speedup_of(*best, times[0])))
      best = &time;
  return best;
}

using Group = std::vector<const TuningEntry*>;  // entries whose weights have one type, so may be one weight

// The layout that gains most for all entries of a group; the standard one if no other layout serves all.
std::string layout_of(const Group& group) {
  const std::string& standard = group[0]->times[0].packing;
  std::map<std::string, double> gains;  // by layout: the smallest gain of any entry
  for (const TuningEntry* entry : group)
    for (const TunedTime& time : entry->times) gains[time.packing] = 1e9;
  for (auto& [packing, gain] : gains)
    for (const TuningEntry* entry : group) {
      const TunedTime* best = winner_of(entry->times, [&](const TunedTime& time) { return time.packing == packing; });
      const double without = packing == standard ? 1 : 0;
      gain = std::min(gain, best == nullptr ? without : speedup_of(*best, entry->times[0]));
    }
  std::string layout = standard;
  for (const auto& [packing, gain] : gains)
    if (gain > gains[layout]) layout = packing;
  return layout;
}

// "12.3 us against 15.1 us of cpu"
std::string times_text(const TunedTime& best, const TuningEntry& entry) {
  const auto microseconds = [](const TunedTime& time) {
    return static_cast<double>(median(time.nanoseconds[0])) / 1e3;
  };
  return fmt::format("{:.1f} us against {:.1f} us of {}", microseconds(best), microseconds(entry.times[0]),
                     entry.standard);
}

TuningDecision decision_of(const TuningEntry& entry, const std::string* layout) {
  const auto fits = [&](const TunedTime& time) { return layout == nullptr || time.packing == *layout; };
  const TunedTime* best = winner_of(entry.times, fits);
  if (best != nullptr) {
    const double speedup = speedup_of(*best, entry.times[0]);
    const bool is_parts = best->provider == kParts;
    if (entry.call.range.lo == entry.call.range.hi)
      return {best->provider, speedup,
              fmt::format("tuned: {}{}", is_parts ? "its parts take " : "", times_text(*best, entry))};
    return {best->provider, speedup,
            fmt::format("tuned: {}{:.1f}x faster than {}", is_parts ? "its parts are " : "", speedup, entry.standard)};
  }
  if (const TunedTime* parts = entry.find(kParts); parts != nullptr && entry.standard != kParts) {
    const double speedup = speedup_of(entry.times[0], *parts);
    return {entry.standard, 1,
            speedup >= 1 ? fmt::format("tuned: {:.2f}x as fast as its parts", speedup)
                         : "tuned: its parts are not 10 % faster in every round"};
  }
  const TunedTime* wished = winner_of(entry.times, [](const TunedTime&) { return true; });
  if (wished == nullptr) return {entry.standard, 1, "nothing is 10 % faster in every round"};
  return {
      entry.standard, 1,
      fmt::format("{} is faster, but not in every range and call of a weight, which has one layout", wished->provider)};
}

void keep_default_where_eager_cannot_tell(const TuningDatabase& database,
                                          std::map<std::string, TuningDecision>& decisions) {
  std::vector<std::string> unclear;
  for (auto a = database.entries.begin(); a != database.entries.end(); ++a)
    for (auto b = std::next(a); b != database.entries.end() && b->second.op == a->second.op; ++b)
      if (decisions[a->first].provider != decisions[b->first].provider && a->second.call.overlaps(b->second.call))
        unclear.insert(unclear.end(), {a->first, b->first});
  for (const std::string& key : unclear)
    decisions[key] = {database.entries.at(key).standard, 1,
                      "measured apart from a call that looks the same in eager mode at some count of rows"};
}

}  // namespace

std::vector<std::string> tuned_order(const std::string& standard, const std::vector<TunedTime>& times) {
  const TunedTime* best = winner_of(times, [](const TunedTime&) { return true; });
  if (best == nullptr) return {standard};
  return {best->provider, standard};
}

std::map<std::string, TuningDecision> decide(const TuningDatabase& database) {
  std::map<std::string, Group> groups;
  const auto group_of = [](const TuningEntry& entry) {
    const auto& operands = entry.call.operands;
    return fmt::format("{} {} {}", entry.op, operands[0] ? dtype_text(operands[0]->dtype) : "",
                       operands[static_cast<std::size_t>(entry.weight)]->text());
  };
  for (const auto& [key, entry] : database.entries)
    if (entry.weight >= 0) groups[group_of(entry)].push_back(&entry);
  std::map<std::string, std::string> layouts;
  for (const auto& [name, group] : groups) layouts[name] = layout_of(group);
  std::map<std::string, TuningDecision> decisions;
  for (const auto& [key, entry] : database.entries)
    decisions[key] = decision_of(entry, entry.weight < 0 ? nullptr : &layouts.at(group_of(entry)));
  keep_default_where_eager_cannot_tell(database, decisions);
  return decisions;
}

void apply_tuning(const TuningDatabase& database, const OpTable& ops, PriorityLists& priorities) {
  for (const auto& [key, decision] : decide(database)) {
    const TuningEntry& entry = database.entries.at(key);
    const Op* op = ops.find(entry.op);
    // A fusion that pays is passed on too, because its reason shows what it gains.
    const bool is_told = decision.provider != entry.standard || (entry.standard != kParts && entry.find(kParts));
    if (op == nullptr || !is_told) continue;
    TunedCall call = entry.call;
    call.attributes = complete_attributes(op->schema, entry.call.attributes.entries());
    call.reason = decision.reason;
    priorities.prefer(entry.op, decision.provider, std::move(call));
  }
}

}  // namespace weft
