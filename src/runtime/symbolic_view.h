#pragma once

// A view of a Plan whose symbols are replaced by indices, so that it is resolved over the bound tensors from an array
// of values without names and without allocation. It keeps no state between calls.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/bound_plan.h"
#include "runtime/symbolic_size.h"

namespace weft {

class SymbolicView {
 public:
  // Looks up names: symbol i is symbols[i]. InternalError for a symbol that is not among them. `view` must outlive this
  // object.
  SymbolicView(const PlanView& view, std::span<const std::string> symbols);

  // The view as a kernel sees it, with values[i] for symbol i.
  TensorView resolve(const BoundPlan& bound, std::span<const std::int64_t> values) const;
  // The same into a tensor of the view's type: sets its sizes, storage and offset. The view must not be absent.
  void resolve(const BoundPlan& bound, std::span<const std::int64_t> values, Tensor& into) const;
  // Whether one of its dims is 0.
  bool is_empty(std::span<const std::int64_t> values) const;

 private:
  const PlanView* view_;
  std::vector<SymbolicSize> sizes_;  // the offset, then for each dim its size and, for a tensor, its stride
};

}  // namespace weft
