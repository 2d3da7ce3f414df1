#pragma once

// A view of a Plan whose symbols are numbered, so that it is resolved over what is bound from an array of their values:
// without names, without memory. Nothing of it is kept from one time to the next.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/bound_plan.h"
#include "runtime/symbolic_size.h"

namespace weft {

class SymbolicView {
 public:
  // Looks names up: symbol i is symbols[i]. InternalError for one that is not among them. `view` must outlive it.
  SymbolicView(const PlanView& view, std::span<const std::string> symbols);

  // As a kernel sees it, where symbol i is values[i].
  TensorView resolve(const BoundPlan& bound, std::span<const std::int64_t> values) const;
  // The same into a tensor of the view's type, whose sizes, storage and offset are set. The view is not absent.
  void resolve(const BoundPlan& bound, std::span<const std::int64_t> values, Tensor& into) const;
  // Whether one of its dims is 0.
  bool is_empty(std::span<const std::int64_t> values) const;

 private:
  const PlanView* view_;
  std::vector<SymbolicSize> sizes_;  // its offset, then the size and, of a tensor, the stride of each dim
};

}  // namespace weft
