#include "kernels/select.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/packing.h"

namespace weft {
namespace {

constexpr const char* kYields = "it leaves such calls to generated code";

std::string rows_reason(const TokenRange& rows, const TokenRange& range) {
  const bool open = rows.hi == std::numeric_limits<std::int64_t>::max();
  return fmt::format("it is for {} rows, not for {} to {}",
                     open ? fmt::format("{} or more", rows.lo) : fmt::format("{} to {}", rows.lo, rows.hi), range.lo,
                     range.hi);
}

}  // namespace

void PriorityLists::set(const std::string& op, std::vector<std::string> providers) {
  if (providers.empty()) {
    user_.erase(op);
  } else {
    user_[op] = std::move(providers);
  }
}

void PriorityLists::add_defaults(const std::string& op, const std::vector<std::string>& providers) {
  std::vector<std::string>& defaults = op_defaults_[op];
  defaults.insert(defaults.end(), providers.begin(), providers.end());
}

void PriorityLists::prefer(const std::string& op, const std::string& provider, TunedCall call) {
  tuned_[op][provider].push_back(std::move(call));
}

PriorityLists PriorityLists::untuned() const {
  PriorityLists lists(defaults_);
  lists.op_defaults_ = op_defaults_;
  lists.user_ = user_;
  return lists;
}

std::vector<std::string> PriorityLists::list(const std::string& op) const {
  std::vector<std::string> names;
  auto append = [&](const std::vector<std::string>& more) {
    for (const std::string& name : more)
      if (name != kMayBeFused && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  if (auto found = user_.find(op); found != user_.end()) append(found->second);
  if (auto found = op_defaults_.find(op); found != op_defaults_.end()) append(found->second);
  append(defaults_);
  append({"native"});
  return names;
}

bool PriorityLists::may_be_fused(const std::string& op) const {
  const auto found = user_.find(op);
  return found == user_.end() || found->second.front() == kMayBeFused;
}

std::vector<Candidate> list_candidates(const KernelRegistry& registry, const PriorityLists& priorities,
                                       const std::string& op, bool batch_invariant) {
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& provider, const std::vector<TunedCall>* tuned, bool is_default = false) {
    Candidate candidate{.provider = provider, .tuned = tuned, .is_default = is_default};
    const Kernel* kernel = provider == "native" ? nullptr : registry.find(op, provider);
    if (kernel != nullptr && batch_invariant && !kernel->batch_invariant) {
      candidate.refusal = "it depends on the other rows of the batch";
    } else if (kernel != nullptr && batch_invariant && kernel->rows != Kernel().rows) {
      candidate.refusal = "it is for some counts of rows alone, so the batch would choose the kernel";
    } else if (kernel == nullptr && provider != "native") {
      candidate.refusal = registry.refusal(op, provider);
      // If the op has a meaning, `reference` needs no kernel: it computes the ops of the meaning.
      if (candidate.refusal.empty() && provider != "reference") candidate.refusal = "has no kernel for " + op;
    } else {
      candidate.kernel = kernel;
    }
    candidates.push_back(std::move(candidate));
  };

  const auto named = priorities.user().find(op);
  const std::vector<std::string> none;
  const std::vector<std::string>& user = named == priorities.user().end() ? none : named->second;
  const auto is_named = [&](const std::string& name) {
    return std::find(user.begin(), user.end(), name) != user.end();
  };
  const std::vector<std::string> all = priorities.list(op);
  const auto first_default = std::find_if_not(all.begin(), all.end(), is_named);
  for (auto provider = all.begin(); provider != first_default; ++provider) add(*provider, nullptr);
  // A measurement is for one range of rows, so it would also let the batch choose the kernel.
  if (const auto tuned = priorities.tuned().find(op); tuned != priorities.tuned().end() && !batch_invariant)
    for (const auto& [provider, calls] : tuned->second)
      if (!is_named(provider)) add(provider, &calls);
  for (auto provider = first_default; provider != all.end(); ++provider) add(*provider, nullptr, true);
  return candidates;
}

const TunedCall* Candidate::tuned_for(const KernelRequest& request) const {
  if (tuned == nullptr) return nullptr;
  const auto found =
      std::find_if(tuned->begin(), tuned->end(), [&](const TunedCall& call) { return call.holds_for(request); });
  return found == tuned->end() ? nullptr : &*found;
}

const Candidate& choose(std::span<const Candidate> candidates, const KernelRequest& request,
                        std::vector<Refusal>* refused, const std::function<bool(const KernelRequest&)>& is_generated,
                        const RequestAsRead& as_read) {
  for (const Candidate& candidate : candidates) {
    const Kernel* kernel = candidate.kernel;
    if (candidate.tuned != nullptr && candidate.tuned_for(request) == nullptr) continue;
    const auto refuse = [&](std::string reason) {
      // A provider that measurements prefer is also among the defaults. Its refusal is recorded once.
      if (refused == nullptr || (!refused->empty() && refused->back().provider == candidate.provider)) return;
      refused->push_back({candidate.provider, std::move(reason)});
    };
    if (!candidate.refusal.empty()) {
      refuse(candidate.refusal);
    } else if (kernel == nullptr) {
      const Verdict verdict = none_is_packed(request);
      if (verdict) return candidate;
      refuse(verdict.reason());
    } else if (request.range.lo < kernel->rows.lo || request.range.hi > kernel->rows.hi) {
      refuse(rows_reason(kernel->rows, request.range));
    } else if (const Verdict verdict = kernel->supports(as_read ? as_read(*kernel) : request); !verdict) {
      refuse(verdict.reason());
    } else if (candidate.is_default && is_generated && kernel->yields(request) && is_generated(request)) {
      refuse(kYields);
    } else {
      return candidate;
    }
  }
  std::vector<Refusal> reasons;
  if (refused == nullptr) return choose(candidates, request, &reasons, is_generated, as_read);
  std::string text;
  for (const Refusal& refusal : *refused) text += fmt::format("; {}: {}", refusal.provider, refusal.reason);
  CHECK(false, "no provider takes the call{}", text);
  return candidates.back();
}

Choice KernelSelector::select(const std::string& op, const KernelRequest& request, const RequestAsRead& as_read) {
  const auto [candidates, is_new] = candidates_.try_emplace(op);
  if (is_new) candidates->second = list_candidates(registry_, priorities_, op, batch_invariant_);
  Choice choice;
  const auto is_generated = [&](const KernelRequest& call) {
    return is_generated_(op, call) != GeneratedExtent::nothing;
  };
  const Candidate& chosen = is_generated_ ? choose(candidates->second, request, &choice.refused, is_generated, as_read)
                                          : choose(candidates->second, request, &choice.refused, {}, as_read);
  choice.provider = chosen.provider;
  choice.kernel = chosen.kernel;
  const TunedCall* tuned = chosen.tuned_for(request);
  choice.is_tuned = tuned != nullptr;
  choice.reason = tuned != nullptr                          ? tuned->reason
                  : choice.refused.empty()                  ? "first in the priority list"
                  : choice.refused.back().reason == kYields ? "generated, as fast as a kernel"
                  : chosen.provider == "native"             ? "the last resort, which is always there"
                                                            : "first in the priority list that supports the call";
  return choice;
}

Choice select_kernel(const KernelRegistry& registry, const PriorityLists& priorities, const std::string& op,
                     const KernelRequest& request, bool batch_invariant) {
  return KernelSelector(registry, priorities, batch_invariant).select(op, request);
}

}  // namespace weft
