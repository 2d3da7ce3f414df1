#pragma once

// The steps of a Plan as kernel calls over resolved addresses, in flat arrays. Running them in order needs no look-up,
// no allocation and no branch on a shape. A change of the token count updates only the sizes that depend on it (a *
// tokens + b); a newly bound tensor updates only the addresses into it.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/bound_plan.h"
#include "runtime/launch_times.h"
#include "runtime/symbolic_size.h"

namespace weft {

class LaunchList {
 public:
  // One launch for each step; symbol i of the Plan's sizes is symbols[i]. `bound` must outlive the list and must not
  // move.
  LaunchList(const BoundPlan& bound, std::span<const std::string> symbols);
  LaunchList(const LaunchList&) = delete;
  LaunchList& operator=(const LaunchList&) = delete;

  std::size_t size() const { return launches_.size(); }

  // Resolves all sizes and the addresses that depend on them.
  void set_symbols(std::span<const std::int64_t> values);
  // Resolves the addresses into a slot, after another tensor was bound to it.
  void rebind(std::size_t slot) { resolve_addresses(slot); }

  const BoundPlan& bound() const { return bound_; }
  std::span<const std::string> symbols() const { return symbols_; }
  // The values of the last set_symbols.
  std::span<const std::int64_t> values() const { return values_; }

  // Runs the launches [first, last), or queues them where the bound memory has a queue.
  void run(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i < last; ++i) run_in_order(*launches_[i].kernel, launches_[i].call);
  }
  // The same for one launch; adds its time to `times` unless that is null.
  void run_one(std::size_t launch, LaunchTimes* times) const {
    timed_launch(*launches_[launch].kernel, launches_[launch].call, times);
  }

 private:
  struct Launch {
    const Kernel* kernel;
    KernelCall call;
  };
  struct AffineSize {
    std::int64_t* target;
    SymbolicSize::Affine size;
  };
  struct OtherSize {
    std::int64_t* target;
    SymbolicSize size;
  };
  struct Address {  // the slot's base + offsets_[offset]
    TensorView* view;
    std::uint32_t slot;
    std::uint32_t offset;
  };

  void resolve_addresses(std::size_t slot);
  void add_view(const PlanView& from);
  void add_size(std::int64_t& target, const Dim& value);
  std::uint32_t add_offset(const Dim& value);
  void sort_addresses();

  const BoundPlan& bound_;
  std::vector<std::string> symbols_;
  std::vector<std::int64_t> values_;
  std::vector<TensorView> views_;  // for each step its operands, then its results
  std::vector<Launch> launches_;
  std::vector<AffineSize> affine_sizes_;
  std::vector<OtherSize> other_sizes_;
  std::vector<std::int64_t> offsets_;       // the first is 0; offsets with a symbol are resolved like sizes
  std::vector<Address> addresses_;          // ordered by slot
  std::vector<std::size_t> first_address_;  // by slot, then the end
  std::vector<std::size_t> moving_slots_;   // slots with an offset that depends on a symbol
};

}  // namespace weft
