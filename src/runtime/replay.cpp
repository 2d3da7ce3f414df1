#include "runtime/replay.h"

#include "base/error.h"

namespace weft {
namespace {

// Whether a bound tensor's type is an instance of the planned one.
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

}  // namespace

Replay::Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups)
    : plan_(std::move(plan)), threads_(threads), groups_(groups) {
  arena_ = Storage::allocate(std::max<std::int64_t>(plan_->arena_bytes, 64));
  bound_.resize(plan_->slots.size());
  addresses_.resize(plan_->slots.size());
  launches_.resize(plan_->steps.size());
  // The patches point into the launches, which do not move from here on.
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const PlanStep& step = plan_->steps[i];
    Launch& launch = launches_[i];
    launch.step = &step;
    for (const PlanView& view : step.operands) launch.operands.push_back(make_view(view));
    for (const PlanView& view : step.results) launch.results.push_back(make_view(view));
    for (std::size_t k = 0; k < step.operands.size(); ++k) capture(launch.operands[k], step.operands[k]);
    for (std::size_t k = 0; k < step.results.size(); ++k) capture(launch.results[k], step.results[k]);
  }
  // Those that hold a symbol once more when it is read; where there is none this is all.
  for (std::size_t slot = 0; slot < plan_->slots.size(); ++slot) apply_addresses(slot);
}

TensorView Replay::make_view(const PlanView& from) const {
  TensorView view;
  if (from.slot < 0) return view;
  const Meta& meta = from.meta;
  view.kind = meta.kind;
  view.dtype = meta.kind == MetaKind::kv ? meta.kv.dtype : meta.dtype;
  view.meta = &meta;
  view.rank = static_cast<std::uint8_t>(meta.shape.size());
  return view;
}

void Replay::capture(TensorView& view, const PlanView& from) {
  if (from.slot < 0) return;
  const Shape strides = from.meta.is_tensor() ? from.meta.full_strides() : Shape{};
  for (std::size_t i = 0; i < from.meta.shape.size(); ++i) {
    auto set = [&](std::int64_t& target, const Dim& value) {
      if (value.is_number()) {
        target = value.number();
      } else {
        sizes_.push_back({&target, value});
      }
    };
    set(view.size[i], from.meta.shape[i]);
    set(view.stride[i], strides[i]);
  }
  addresses_[static_cast<std::size_t>(from.slot)].push_back({&view, from.byte_offset});
}

void Replay::bind(std::size_t index, Tensor tensor) {
  CHECK(index < plan_->inputs.size(), "plan {} has {} inputs", plan_->name, plan_->inputs.size());
  const auto slot = static_cast<std::size_t>(plan_->inputs[index]);
  const PlanSlot& planned = plan_->slots[slot];
  USER_CHECK(fits(planned.meta, tensor.meta), "[{}] input {} must be {}, but is {}", plan_->name, planned.name,
             planned.meta.text(), tensor.meta.text());
  const bool moved = !bound_[slot].defined() || bound_[slot].data() != tensor.data();
  bound_[slot] = std::move(tensor);
  if (moved) apply_addresses(slot);
}

void Replay::read_symbols() {
  Bindings symbols;
  for (int slot : plan_->inputs) {
    const Meta& planned = plan_->slots[static_cast<std::size_t>(slot)].meta;
    const Tensor& tensor = bound_[static_cast<std::size_t>(slot)];
    CHECK(tensor.defined(), "plan {} was run without its input {}", plan_->name,
          plan_->slots[static_cast<std::size_t>(slot)].name);
    for (std::size_t i = 0; i < planned.shape.size(); ++i) {
      const std::string symbol = planned.shape[i].symbol_name();
      if (symbol.empty()) continue;
      const std::int64_t value = tensor.meta.shape[i].number();
      const auto [known, is_new] = symbols.emplace(symbol, value);
      CHECK(is_new || known->second == value, "inputs of plan {} disagree on {}: {} and {}", plan_->name, symbol,
            known->second, value);
    }
  }
  if (symbols == symbols_) return;
  for (const auto& [symbol, value] : symbols) {
    auto bound = plan_->bounds.find(symbol);
    CHECK(bound == plan_->bounds.end() || value == 0 || (value >= bound->second.lo && value <= bound->second.hi),
          "plan {} was made for {} in [{}, {}], but it is {}", plan_->name, symbol, bound->second.lo, bound->second.hi,
          value);
  }
  symbols_ = std::move(symbols);
  apply_sizes();
}

void Replay::apply_sizes() {
  for (const SizePatch& patch : sizes_) *patch.target = patch.value.evaluate(symbols_);
  for (std::size_t slot = 0; slot < plan_->slots.size(); ++slot) apply_addresses(slot);
}

void Replay::apply_addresses(std::size_t slot) {
  const PlanSlot& planned = plan_->slots[slot];
  std::byte* base = nullptr;
  if (planned.kind == SlotKind::arena) {
    base = arena_->data() + planned.offset;
  } else if (bound_[slot].defined()) {
    base = bound_[slot].data();
  }
  for (const AddressPatch& patch : addresses_[slot]) {
    const std::int64_t offset = patch.byte_offset.is_number() ? patch.byte_offset.number()
                                : symbols_.empty()            ? 0
                                                              : patch.byte_offset.evaluate(symbols_);
    patch.view->data = base == nullptr ? nullptr : base + offset;
    // How many pages there are stands with the bound tensor alone.
    if (planned.meta.kind == MetaKind::kv && bound_[slot].defined())
      patch.view->size[0] =
          bound_[slot].storage->bytes() / bytes_of(planned.meta.kv.dtype, kv_page_elements(planned.meta.kv));
  }
}

void Replay::run() {
  read_symbols();
  for (const auto& [symbol, value] : symbols_)
    if (value == 0) return;
  const std::span<std::byte> scratch(arena_->data() + plan_->scratch_offset,
                                     static_cast<std::size_t>(arena_->bytes() - plan_->scratch_offset));
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const Launch& launch = launches_[i];
    launch.step->kernel->run({launch.operands, launch.results, launch.step->attributes, scratch, threads_, groups_});
    if (observer) observer(i);
  }
}

Tensor Replay::result(std::size_t index) const {
  const PlanView& view = plan_->results.at(index);
  const auto slot = static_cast<std::size_t>(view.slot);
  Tensor tensor;
  tensor.meta = view.meta;
  for (Dim& dim : tensor.meta.shape) dim = dim.evaluate(symbols_);
  for (Dim& dim : tensor.meta.strides) dim = dim.evaluate(symbols_);
  if (plan_->slots[slot].kind == SlotKind::arena) {
    tensor.storage = arena_;
    tensor.byte_offset = plan_->slots[slot].offset + view.byte_offset.evaluate(symbols_);
  } else {
    tensor.storage = bound_[slot].storage;
    tensor.byte_offset = bound_[slot].byte_offset + view.byte_offset.evaluate(symbols_);
  }
  return tensor;
}

}  // namespace weft
