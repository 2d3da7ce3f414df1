#include "runtime/replay.h"

#include <algorithm>

#include "base/error.h"
#include "base/stopwatch.h"
#include "runtime/step_by_step.h"

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

std::size_t index_of(ReplayMode mode) {
  CHECK(is_simple(mode), "a run is in one mode, but is told {}", replay_mode_text(mode));
  return static_cast<std::size_t>(mode);
}

}  // namespace

Replay::Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups, ReplaySettings settings)
    : bound_{.plan = std::move(plan), .arena = {}, .tensors = {}, .threads = threads, .groups = groups},
      settings_(std::move(settings)) {
  const Plan& planned = *bound_.plan;
  if (settings_.first_time_work != nullptr)
    settings_.first_time_work->begin(FirstTime::allocate, fmt::format("the arena of plan {}", planned.name));
  bound_.arena = Storage::allocate(std::max<std::int64_t>(planned.arena_bytes, 64));
  bound_.tensors.resize(planned.slots.size());
  unbound_ = planned.inputs.size();
  find_symbols();
}

Replay::~Replay() = default;

void Replay::find_symbols() {
  const Plan& plan = *bound_.plan;
  for (const int input : plan.inputs) {
    const auto slot = static_cast<std::size_t>(input);
    const Shape& shape = plan.slots[slot].meta.shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      const std::string symbol = shape[dim].symbol_name();
      if (symbol.empty()) continue;
      const auto known = std::find(symbols_.begin(), symbols_.end(), symbol);
      symbol_sources_.push_back({slot, dim, static_cast<std::size_t>(known - symbols_.begin())});
      if (known != symbols_.end()) continue;
      const auto bound = plan.bounds.find(symbol);
      symbol_bounds_.push_back(bound == plan.bounds.end() ? Interval{} : bound->second);
      symbols_.push_back(symbol);
    }
  }
  values_.resize(symbols_.size());
  read_.resize(symbols_.size());
}

void Replay::bind(std::size_t index, Tensor tensor) {
  const Plan& plan = *bound_.plan;
  CHECK(index < plan.inputs.size(), "plan {} has {} inputs", plan.name, plan.inputs.size());
  const auto slot = static_cast<std::size_t>(plan.inputs[index]);
  const PlanSlot& planned = plan.slots[slot];
  USER_CHECK(fits(planned.meta, tensor.meta), "[{}] input {} must be {}, but is {}", plan.name, planned.name,
             planned.meta.text(), tensor.meta.text());
  Tensor& bound = bound_.tensors[slot];
  const bool is_first = !bound.defined();
  const bool has_moved = is_first || bound.data() != tensor.data();
  bound = std::move(tensor);
  if (is_first) --unbound_;
  if (has_moved && list_ != nullptr) list_->rebind(slot);
}

void Replay::capture(ReplayMode mode) {
  if (mode == ReplayMode::none || captured_[index_of(mode)]) return;
  if (settings_.first_time_work != nullptr)
    settings_.first_time_work->begin(FirstTime::capture,
                                     fmt::format("plan {}, {}", bound_.plan->name, replay_mode_text(mode)));
  Stopwatch watch;
  if (list_ == nullptr) list_ = std::make_unique<LaunchList>(bound_, symbols_);
  Captured captured{.stretches = cut_for_capture(*bound_.plan, mode), .launches = {}};
  Capturer& capturer = settings_.capturer == nullptr ? host_ : *settings_.capturer;
  for (const Stretch& stretch : captured.stretches) {
    captured.launches.push_back(stretch.is_captured ? capturer.capture(*list_, stretch.first, stretch.last) : nullptr);
    counts_.captures += stretch.is_captured ? 1 : 0;
  }
  captured_[index_of(mode)] = std::move(captured);
  const double milliseconds = watch.lap("capture");
  counts_.capture_milliseconds += milliseconds;
  if (settings_.on_capture)
    settings_.on_capture(fmt::format("{}: captured {} steps, {}, in {:.3f} ms", bound_.plan->name,
                                     bound_.plan->steps.size(), replay_mode_text(mode), milliseconds));
}

const std::vector<Stretch>& Replay::stretches(ReplayMode mode) const {
  static const std::vector<Stretch> kNone;
  const std::optional<Captured>& captured = captured_[index_of(mode)];
  return captured ? captured->stretches : kNone;
}

void Replay::read_symbols() {
  const Plan& plan = *bound_.plan;
  if (unbound_ > 0)
    for (const int slot : plan.inputs)
      CHECK(bound_.tensors[static_cast<std::size_t>(slot)].defined(), "plan {} was run without its input {}", plan.name,
            plan.slots[static_cast<std::size_t>(slot)].name);
  constexpr std::int64_t kUnread = -1;
  std::fill(read_.begin(), read_.end(), kUnread);
  for (const SymbolSource& source : symbol_sources_) {
    const std::int64_t value = bound_.tensors[source.slot].meta.shape[source.dim].number();
    std::int64_t& known = read_[source.symbol];
    CHECK(known == kUnread || known == value, "inputs of plan {} disagree on {}: {} and {}", plan.name,
          symbols_[source.symbol], known, value);
    known = value;
  }
  if (read_ == values_) return;
  for (std::size_t i = 0; i < read_.size(); ++i)
    CHECK(read_[i] == 0 || (read_[i] >= symbol_bounds_[i].lo && read_[i] <= symbol_bounds_[i].hi),
          "plan {} was made for {} in [{}, {}], but it is {}", plan.name, symbols_[i], symbol_bounds_[i].lo,
          symbol_bounds_[i].hi, read_[i]);
  values_.swap(read_);
  is_resolved_ = false;
}

void Replay::resolve() {
  if (is_resolved_) return;
  list_->set_symbols(values_);
  is_resolved_ = true;
  ++counts_.resolved;
}

Bindings Replay::bindings() const {
  Bindings bindings;
  for (std::size_t i = 0; i < symbols_.size(); ++i) bindings[symbols_[i]] = values_[i];
  return bindings;
}

void Replay::run(ReplayMode mode) {
  read_symbols();
  if (std::find(values_.begin(), values_.end(), 0) != values_.end()) return;
  capture(mode);
  ++counts_.runs;
  if (on_start) on_start();
  if (mode == ReplayMode::none) return run_steps(0, bound_.plan->steps.size(), bindings(), observer);
  resolve();
  const Captured& captured = *captured_[index_of(mode)];
  if (settings_.check) return run_checked(captured);
  run_captured(captured, observer);
}

void Replay::run_checked(const Captured& captured) {
  const Bindings symbols = bindings();
  const auto observed = [this](const StepObserver& observe) -> const StepObserver& {
    return observe ? observe : observer;
  };
  check_replay(bound_, symbols,
               {.replay = [&](const StepObserver& observe) { run_captured(captured, observed(observe)); },
                .step_by_step =
                    [&](const StepObserver& observe) { run_steps(0, bound_.plan->steps.size(), symbols, observe); }});
}

void Replay::run_captured(const Captured& captured, const StepObserver& observe) {
  for (std::size_t i = 0; i < captured.stretches.size(); ++i) {
    const Stretch& stretch = captured.stretches[i];
    if (!stretch.is_captured) {
      run_steps(stretch.first, stretch.last, bindings(), observe);
    } else if (!observe && launch_times == nullptr) {
      captured.launches[i]->replay();
    } else {
      for (std::size_t step = stretch.first; step < stretch.last; ++step) {
        list_->run_one(step, launch_times);
        if (observe) observe(step);
      }
    }
  }
}

void Replay::run_steps(std::size_t first, std::size_t last, const Bindings& symbols, const StepObserver& observe) {
  for (std::size_t i = first; i < last; ++i) {
    const PlanStep& step = bound_.plan->steps[i];
    counts_.look_ups += static_cast<std::int64_t>(step.operands.size() + step.results.size());
    counts_.allocations += 2;
    run_step(bound_, i, symbols, launch_times);
    if (observe) observe(i);
  }
}

Tensor Replay::result(std::size_t index) const { return tensor(plan().results.at(index)); }

Tensor Replay::tensor(const PlanView& view) const {
  const auto slot = static_cast<std::size_t>(view.slot);
  const Bindings symbols = bindings();
  Tensor tensor;
  tensor.meta = view.meta;
  for (Dim& dim : tensor.meta.shape) dim = dim.evaluate(symbols);
  for (Dim& dim : tensor.meta.strides) dim = dim.evaluate(symbols);
  const std::int64_t offset = view.byte_offset.evaluate(symbols);
  if (plan().slots[slot].kind == SlotKind::arena) {
    tensor.storage = bound_.arena;
    tensor.byte_offset = plan().slots[slot].offset + offset;
  } else {
    tensor.storage = bound_.tensors[slot].storage;
    tensor.byte_offset = bound_.tensors[slot].byte_offset + offset;
  }
  return tensor;
}

}  // namespace weft
