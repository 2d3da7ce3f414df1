#pragma once

// A Plan with the memory its slots stand for: one arena, and the tensors bound to its inputs.

#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace weft {

struct BoundPlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<Storage> arena;
  std::vector<Tensor> tensors;  // by slot; those of the arena stay undefined
  ThreadPool& threads;
  const RankGroups* groups = nullptr;
  LaunchQueue* queue = nullptr;  // of the device that the memory is of; null for the host's

  // The first byte of a slot; null where nothing is bound.
  std::byte* base(std::size_t slot) const;
  // How many KV pages are bound to a slot; 0 for other slots.
  std::int64_t pages(std::size_t slot) const;
  // Of one of its steps, for the largest run.
  std::span<std::byte> scratch(const PlanStep& step) const;
};

// Whether a bound tensor's type is an instance of the planned one.
bool fits(const Meta& planned, const Meta& given);

// What a kernel sees of a view whatever is bound: types, no sizes, no address.
TensorView unresolved_view(const PlanView& view);

}  // namespace weft
