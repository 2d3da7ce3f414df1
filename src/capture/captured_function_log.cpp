// The messages of a CapturedFunction: in its log, and once on stderr about what will stay slow.

#include <algorithm>
#include <iostream>

#include <fmt/ranges.h>

#include "base/error.h"
#include "capture/captured_function.h"

namespace weft {

void CapturedFunction::log_fewer_symbols(const std::vector<SymbolicDim>& choice, const std::vector<SymbolicDim>& next,
                                         std::string_view why) const {
  std::set<std::string> marked, others;
  for (const SymbolicDim& dim : choice) (dim.is_marked ? marked : others).insert(dim.symbol);
  for (const SymbolicDim& dim : next) (dim.is_marked ? marked : others).erase(dim.symbol);
  const Log::Detail detail = marked.empty() ? Log::Detail::more : Log::Detail::some;
  marked.merge(others);
  context_->log.say(
      "recompiles", detail,
      fmt::format("{}: {} compiled number by number, as {}", name_,
                  marked.empty() ? "some sizes are"
                                 : fmt::format("{} {}", fmt::join(marked, ", "), marked.size() == 1 ? "is" : "are"),
                  why));
}

void CapturedFunction::refuse_another_try(const std::string& why) const {
  fail_user(
      "[{}] failed where rows may be a symbol, and cannot be tried again, as it overwrote its arguments; the next "
      "call has fewer symbols; where its code takes a size for a number, extent() gives that: {}",
      name_, why);
}

void CapturedFunction::log_recompile(std::span<const Leaf> leaves) {
  for (std::size_t i = entries_.size(); i-- > 0;) {
    const GuardList::Failure failure = entries_[i]->guards.first_failure(leaves, entries_[i]->names);
    const bool is_last = i + 1 == entries_.size();
    if (is_last) {
      ++failures_[failure.subject];
      last_failure_ = fmt::format("wanted {}, but is {}", failure.guard, failure.came);
    }
    context_->log.say("recompiles", is_last ? Log::Detail::some : Log::Detail::more,
                      fmt::format("{}: no entry {}: wanted {}, but is {}", name_, i, failure.guard, failure.came));
  }
}

void CapturedFunction::log_entry(std::size_t index) const {
  const Entry& entry = *entries_[index];
  std::string ranges;
  for (const auto& [symbol, range] : entry.tree.bounds)
    ranges += fmt::format(", {} in [{}, {}]", symbol, range.lo, range.hi);
  context_->log.say("guards", Log::Detail::some,
                    fmt::format("{}: entry {} has {} guards{}{}", name_, index, entry.guards.size(), ranges,
                                entry.tree.has_reads ? ", graph breaks" : ""));
  if (context_->log.detail("guards") != Log::Detail::more) return;
  for (const std::string& guard : entry.guards.texts(entry.names))
    context_->log.say("guards", Log::Detail::more, fmt::format("{}: entry {}: {}", name_, index, guard));
}

void CapturedFunction::warn_of_ways() {
  if (has_warned_of_ways_) return;
  has_warned_of_ways_ = true;
  std::cerr << fmt::format(
      "weft: [{}] continues in a way that is not compiled; such calls run op by op, and compiled code is kept: {}\n",
      name_, recorder_.why_not_kept());
}

void CapturedFunction::warn_of_limit() {
  if (has_warned_) return;
  has_warned_ = true;
  const auto worst = std::max_element(failures_.begin(), failures_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  std::cerr << fmt::format(
      "weft: [{}] was compiled {} times, so calls that no guards let in run op by op from now on; what keeps changing "
      "is {} ({})\n",
      name_, entries_.size(), worst->first, last_failure_);
}

}  // namespace weft
