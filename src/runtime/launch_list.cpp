#include "runtime/launch_list.h"

#include <algorithm>

#include "base/error.h"
#include "base/sort.h"

namespace weft {
namespace {

std::size_t view_count(const Plan& plan) {
  std::size_t count = 0;
  for (const PlanStep& step : plan.steps) count += step.operands.size() + step.results.size();
  return count;
}

}  // namespace

LaunchList::LaunchList(const BoundPlan& bound, std::span<const std::string> symbols)
    : bound_(bound), symbols_(symbols.begin(), symbols.end()) {
  const Plan& plan = *bound.plan;
  // Sizes, addresses and calls point into the views, and sizes also into the offsets, so neither may reallocate later.
  views_.reserve(view_count(plan));
  offsets_.reserve(views_.capacity() + 1);
  offsets_.push_back(0);
  launches_.reserve(plan.steps.size());
  for (const PlanStep& step : plan.steps) {
    const TensorView* const operands = views_.data() + views_.size();
    for (const std::vector<PlanView>* views : {&step.operands, &step.results})
      for (const PlanView& view : *views) add_view(view);
    launches_.push_back({step.kernel,
                         {.operands = {operands, step.operands.size()},
                          .results = {operands + step.operands.size(), step.results.size()},
                          .attributes = step.attributes,
                          .scratch = bound.scratch(step),
                          .threads = bound.threads,
                          .groups = bound.groups,
                          .queue = bound.queue}});
  }
  sort_addresses();
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) resolve_addresses(slot);
  values_.resize(symbols_.size());
}

void LaunchList::add_view(const PlanView& from) {
  TensorView& view = views_.emplace_back(unresolved_view(from));
  if (from.slot < 0) return;
  const Shape strides = from.meta.is_tensor() ? from.meta.full_strides() : Shape{};
  for (std::size_t i = 0; i < from.meta.shape.size(); ++i) {
    add_size(view.size[i], from.meta.shape[i]);
    add_size(view.stride[i], strides[i]);
  }
  addresses_.push_back({&view, static_cast<std::uint32_t>(from.slot), add_offset(from.byte_offset)});
}

void LaunchList::add_size(std::int64_t& target, const Dim& value) {
  if (value.is_number()) {
    target = value.number();
    return;
  }
  SymbolicSize size(value, symbols_);
  if (size.is_affine()) {
    affine_sizes_.push_back({&target, size.affine()});
  } else {
    other_sizes_.push_back({&target, std::move(size)});
  }
}

std::uint32_t LaunchList::add_offset(const Dim& value) {
  if (value == Dim(0)) return 0;
  offsets_.push_back(0);
  add_size(offsets_.back(), value);
  return static_cast<std::uint32_t>(offsets_.size() - 1);
}

void LaunchList::sort_addresses() {
  std::stable_sort(addresses_.begin(), addresses_.end(),
                   [](const Address& a, const Address& b) { return a.slot < b.slot; });
  first_address_.resize(bound_.plan->slots.size() + 1);
  for (const Address& address : addresses_) ++first_address_[address.slot + 1];
  for (std::size_t slot = 1; slot < first_address_.size(); ++slot) first_address_[slot] += first_address_[slot - 1];
  for (const PlanStep& step : bound_.plan->steps)
    for (const std::vector<PlanView>* views : {&step.operands, &step.results})
      for (const PlanView& view : *views)
        if (view.slot >= 0 && !view.byte_offset.is_number())
          moving_slots_.push_back(static_cast<std::size_t>(view.slot));
  sort_without_repeats(moving_slots_);
}

void LaunchList::set_symbols(std::span<const std::int64_t> values) {
  for (const AffineSize& patch : affine_sizes_)
    *patch.target = patch.size.factor * values[patch.size.symbol] + patch.size.constant;
  for (const OtherSize& patch : other_sizes_) *patch.target = patch.size.value(values);
  for (const std::size_t slot : moving_slots_) resolve_addresses(slot);
  std::copy(values.begin(), values.end(), values_.begin());
}

void LaunchList::resolve_addresses(std::size_t slot) {
  std::byte* const base = bound_.base(slot);
  const bool has_pages = bound_.plan->slots[slot].meta.kind == MetaKind::kv;
  const std::int64_t pages = bound_.pages(slot);
  for (std::size_t i = first_address_[slot]; i < first_address_[slot + 1]; ++i) {
    TensorView& view = *addresses_[i].view;
    view.data = base == nullptr ? nullptr : base + offsets_[addresses_[i].offset];
    // Only the bound tensor has the number of pages.
    if (has_pages) view.size[0] = pages;
  }
}

}  // namespace weft
