#pragma once

// Chooses the kernel that runs: the first provider of the priority list that supports the call. Keeps every refusal
// before it.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "kernels/tuned_call.h"
#include "options/options.h"

namespace weft {

struct Refusal {
  std::string provider;
  std::string reason;
};

struct Choice {
  std::string provider;
  const Kernel* kernel =
      nullptr;                   // null for `native`: the op's meaning, or its reference kernel when it is a primitive
  std::string reason;            // why this one: "first in the priority list that supports the call"
  bool is_tuned = false;         // whether a measurement chose it
  std::vector<Refusal> refused;  // the candidates tried before it, in order
};

// Priority lists: the user's names first, then the defaults of the op and of the device that are not yet in the list,
// then `native`. Measurements may put a provider before the defaults, for single calls.
class PriorityLists {
 public:
  explicit PriorityLists(std::vector<std::string> device_defaults) : defaults_(std::move(device_defaults)) {}
  // Sets the user's list of an op; an empty list removes it.
  void set(const std::string& op, std::vector<std::string> providers);
  // Adds defaults of one op, before those of the device.
  void add_defaults(const std::string& op, const std::vector<std::string>& providers);
  // The providers of the op in order, without kMayBeFused.
  std::vector<std::string> list(const std::string& op) const;
  // Whether the user's list of the op, if there is one, begins with kMayBeFused.
  bool may_be_fused(const std::string& op) const;
  const std::map<std::string, std::vector<std::string>>& user() const { return user_; }
  // Puts a provider before the defaults for one call. A call has at most one such provider.
  void prefer(const std::string& op, const std::string& provider, TunedCall call);
  // The preferred calls, by op and provider.
  using Tuned = std::map<std::string, std::map<std::string, std::vector<TunedCall>>>;
  const Tuned& tuned() const { return tuned_; }
  // The same without measurements.
  PriorityLists untuned() const;

 private:
  std::vector<std::string> defaults_;
  std::map<std::string, std::vector<std::string>> op_defaults_;
  std::map<std::string, std::vector<std::string>> user_;
  Tuned tuned_;
};

// A provider that may run an op, with everything decided that does not depend on the call.
struct Candidate {
  std::string provider;
  // Null if `refusal` says why not, for `native`, and for `reference` if that is the op's meaning. The last two accept
  // every call of plain tensors; an op's meaning cannot read packed ones.
  const Kernel* kernel = nullptr;
  std::string refusal = {};
  // If measurements added it: the only calls it is a candidate for. Owned by the PriorityLists.
  const std::vector<TunedCall>* tuned = nullptr;
  bool is_default = false;  // neither the user nor a measurement added it

  // The measurement that makes it a candidate for the call; null if there is none.
  const TunedCall* tuned_for(const KernelRequest& request) const;
};

// Lists the candidates in order of priority, `native` included; those after it are for packed tensors. `op` is the op's
// name. The PriorityLists must outlive the result unchanged.
std::vector<Candidate> list_candidates(const KernelRegistry& registry, const PriorityLists& priorities,
                                       const std::string& op, bool batch_invariant);

// How much of a call generated code computes: nothing; some parts, while kernels that overwrite arguments compute the
// others; or the whole call.
enum class GeneratedExtent : std::uint8_t { nothing, parts, whole };
using GeneratedCheck = std::function<GeneratedExtent(const std::string& op, const KernelRequest& request)>;

// A call as this kernel reads it: after the copies made for this kernel only.
using RequestAsRead = std::function<KernelRequest(const Kernel&)>;

// Returns the first candidate that supports the call and does not yield it to generated code, as `is_generated`
// reports. The candidates before it are added to `refused`, if given, with their reasons. `as_read`, if given, converts
// the request for each kernel before it is asked.
const Candidate& choose(std::span<const Candidate> candidates, const KernelRequest& request,
                        std::vector<Refusal>* refused = nullptr,
                        const std::function<bool(const KernelRequest&)>& is_generated = {},
                        const RequestAsRead& as_read = {});

// Chooses for many calls and lists an op's candidates once. The registry and the PriorityLists must outlive it
// unchanged.
class KernelSelector {
 public:
  // Without `is_generated` no kernel yields.
  KernelSelector(const KernelRegistry& registry, const PriorityLists& priorities, bool batch_invariant,
                 GeneratedCheck is_generated = {})
      : registry_(registry),
        priorities_(priorities),
        batch_invariant_(batch_invariant),
        is_generated_(std::move(is_generated)) {}
  Choice select(const std::string& op, const KernelRequest& request, const RequestAsRead& as_read = {});

 private:
  const KernelRegistry& registry_;
  const PriorityLists& priorities_;
  bool batch_invariant_;
  GeneratedCheck is_generated_;
  std::map<std::string, std::vector<Candidate>> candidates_;  // by op
};

// The choice for one (node, token range), with its reasons.
Choice select_kernel(const KernelRegistry& registry, const PriorityLists& priorities, const std::string& op,
                     const KernelRequest& request, bool batch_invariant);

}  // namespace weft
