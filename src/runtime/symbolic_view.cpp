#include "runtime/symbolic_view.h"

namespace weft {

SymbolicView::SymbolicView(const PlanView& view, std::span<const std::string> symbols) : view_(&view) {
  if (view.slot < 0) return;
  const Shape strides = view.meta.is_tensor() ? view.meta.full_strides() : Shape{};
  sizes_.reserve(1 + view.meta.shape.size() + strides.size());
  sizes_.emplace_back(view.byte_offset, symbols);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    sizes_.emplace_back(view.meta.shape[i], symbols);
    sizes_.emplace_back(strides[i], symbols);
  }
}

TensorView SymbolicView::resolve(const BoundPlan& bound, std::span<const std::int64_t> values) const {
  TensorView view = unresolved_view(*view_);
  if (view_->slot < 0) return view;
  const auto slot = static_cast<std::size_t>(view_->slot);
  if (std::byte* base = bound.base(slot); base != nullptr) view.data = base + sizes_[0].value(values);
  if (view_->meta.kind == MetaKind::kv) view.size[0] = bound.pages(slot);
  for (std::size_t i = 1; i < sizes_.size(); i += 2) {
    view.size[i / 2] = sizes_[i].value(values);
    view.stride[i / 2] = sizes_[i + 1].value(values);
  }
  return view;
}

void SymbolicView::resolve(const BoundPlan& bound, std::span<const std::int64_t> values, Tensor& into) const {
  for (std::size_t i = 1; i < sizes_.size(); i += 2) {
    into.meta.shape[i / 2] = sizes_[i].value(values);
    if (!into.meta.strides.empty()) into.meta.strides[i / 2] = sizes_[i + 1].value(values);
  }
  const auto slot = static_cast<std::size_t>(view_->slot);
  const PlanSlot& planned = bound.plan->slots[slot];
  const bool is_bound = planned.kind != SlotKind::arena;
  into.storage = is_bound ? bound.tensors[slot].storage : bound.arena;
  into.byte_offset = sizes_[0].value(values) + (is_bound ? bound.tensors[slot].byte_offset : planned.offset);
}

bool SymbolicView::is_empty(std::span<const std::int64_t> values) const {
  for (std::size_t i = 1; i < sizes_.size(); i += 2)
    if (sizes_[i].value(values) == 0) return true;
  return false;
}

}  // namespace weft
