#pragma once

// A Plan with the memory of its slots: one arena, and the tensors that are bound to its inputs.

#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace weft {

struct BoundPlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<Storage> arena;
  std::vector<Tensor> tensors;  // by slot; undefined for arena slots
  ThreadPool& threads;
  const RankGroups* groups = nullptr;
  LaunchQueue* queue = nullptr;  // of the device that owns the memory; null for host memory

  // The first byte of a slot; null where nothing is bound.
  std::byte* base(std::size_t slot) const;
  // How many KV pages are bound to a slot; 0 for other slots.
  std::int64_t pages(std::size_t slot) const;
  // The scratch memory of a step of the Plan, sized for the largest run.
  std::span<std::byte> scratch(const PlanStep& step) const;
};

// Whether a bound tensor's type is an instance of the planned one.
bool fits(const Meta& planned, const Meta& given);

// The part of a view that does not depend on what is bound: types, but no sizes and no address.
TensorView unresolved_view(const PlanView& view);

}  // namespace weft
