#include "runtime/bound_plan.h"

#include "base/error.h"
#include "tensor/kv_pages.h"

namespace weft {

std::byte* BoundPlan::base(std::size_t slot) const {
  const PlanSlot& planned = plan->slots[slot];
  if (planned.kind == SlotKind::arena) return arena->data() + planned.offset;
  return tensors[slot].defined() ? tensors[slot].data() : nullptr;
}

std::int64_t BoundPlan::pages(std::size_t slot) const {
  const Meta& meta = plan->slots[slot].meta;
  if (meta.kind != MetaKind::kv || !tensors[slot].defined()) return 0;
  return tensors[slot].storage->bytes() / kv_page_bytes(meta.kv);
}

std::span<std::byte> BoundPlan::scratch(const PlanStep& step) const {
  const std::int64_t bytes = step.scratch_bytes.range(plan->bounds).hi;
  CHECK(bytes <= arena->bytes() - step.scratch_offset, "{} bytes of scratch at {} in an arena of {} bytes", bytes,
        step.scratch_offset, arena->bytes());
  return {arena->data() + step.scratch_offset, static_cast<std::size_t>(bytes)};
}

TensorView unresolved_view(const PlanView& from) {
  TensorView view;
  if (from.slot < 0) return view;
  view.kind = from.meta.kind;
  view.dtype = from.meta.kind == MetaKind::kv ? from.meta.kv.dtype : from.meta.dtype;
  view.meta = &from.meta;
  view.rank = static_cast<std::uint8_t>(from.meta.shape.size());
  return view;
}

bool fits(const Meta& planned, const Meta& given) {
  if (planned.kind != given.kind) return false;
  if (planned.kind == MetaKind::kv) return planned.kv == given.kv;
  if (planned.kind != MetaKind::tensor) return true;
  if (planned.dtype != given.dtype || planned.packed != given.packed || planned.shape.size() != given.shape.size())
    return false;
  if (given.is_contiguous() != planned.is_contiguous()) return false;
  if (!given.is_contiguous() && given.strides != planned.strides) return false;
  for (std::size_t i = 0; i < planned.shape.size(); ++i)
    if (planned.shape[i].is_number() && !(planned.shape[i] == given.shape[i])) return false;
  return true;
}

}  // namespace weft
