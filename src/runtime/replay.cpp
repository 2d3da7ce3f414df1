#include "runtime/replay.h"

#include <algorithm>

#include "base/error.h"
#include "base/resident_memory.h"
#include "base/stopwatch.h"
#include "runtime/cuda/stream_device.h"

namespace weft {
namespace {

std::size_t index_of(ReplayMode mode) {
  CHECK(is_simple(mode), "a run is in one mode, but got {}", replay_mode_text(mode));
  return static_cast<std::size_t>(mode);
}

void check_is_launched(const Plan& plan, const cuda::StreamDevice& device) {
  if (device.facts().host_reads_memory) return;
  for (const PlanStep& step : plan.steps)
    if (!step.kernel->launches)
      fail_device(
          "[{}] a step of plan {}, piece {}{}, is computed by {}@{}, a kernel of the host, which cannot read the "
          "device's "
          "memory: wanted a kernel of the device, or generated code, which takes NVRTC",
          device.facts().name, plan.name, step.piece, step.layer.empty() ? "" : " in layer " + step.layer, step.op,
          step.kernel->provider);
}

TimelineEvent launch_event(const PlanStep& step) {
  return {step.op, {{"provider", step.kernel->provider}, {"piece", step.piece}, {"layer", step.layer}}};
}

}  // namespace

Replay::Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups, ReplaySettings settings)
    : bound_{.plan = std::move(plan), .arena = {}, .tensors = {}, .threads = threads, .groups = groups},
      settings_(std::move(settings)) {
  const Plan& planned = *bound_.plan;
  if (settings_.device != nullptr) check_is_launched(planned, *settings_.device);
  if (settings_.first_time_work != nullptr)
    settings_.first_time_work->begin(FirstTime::allocate, fmt::format("the arena of plan {}", planned.name));
  const std::int64_t bytes = std::max<std::int64_t>(planned.arena_bytes, 64);
  bound_.arena = settings_.arena;
  if (bound_.arena == nullptr)
    bound_.arena = settings_.device == nullptr ? Storage::allocate(bytes) : settings_.device->allocate(bytes);
  CHECK(bound_.arena->bytes() >= planned.arena_bytes, "plan {} wants an arena of {} bytes, but is given {}",
        planned.name, planned.arena_bytes, bound_.arena->bytes());
  if (settings_.device != nullptr) bound_.queue = &settings_.device->queue();
  bound_.tensors.resize(planned.slots.size());
  for (const int input : planned.inputs) {  // allocates memory for the inputs' types, which bind() reuses
    const auto slot = static_cast<std::size_t>(input);
    bound_.tensors[slot].meta = planned.slots[slot].meta;
  }
  unbound_ = planned.inputs.size();
  place_scalars();
  find_symbols();
  number_results();
  steps_.emplace(bound_, symbols_);
}

// Queued work reads the Plan and the bound tensors, so it must end first.
Replay::~Replay() {
  if (settings_.device != nullptr) settings_.device->settle();
}

// Binds all scalars once, in memory where kernels read them.
void Replay::place_scalars() {
  const Plan& plan = *bound_.plan;
  const auto is_scalar = [](const PlanSlot& slot) { return slot.kind == SlotKind::scalar; };
  const std::int64_t count = std::count_if(plan.slots.begin(), plan.slots.end(), is_scalar);
  if (count == 0) return;
  Tensor all = Tensor::empty(Meta::tensor(DType::f32, {count}));
  auto* next = reinterpret_cast<float*>(all.data());
  for (const PlanSlot& slot : plan.slots)
    if (is_scalar(slot)) *next++ = slot.scalar;
  if (settings_.device != nullptr) all = settings_.device->upload(all);
  std::int64_t offset = all.byte_offset;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (!is_scalar(plan.slots[i])) continue;
    bound_.tensors[i] = {.meta = plan.slots[i].meta, .storage = all.storage, .byte_offset = offset};
    offset += bytes_of(DType::f32, 1);
  }
}

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

void Replay::number_results() {
  for (const PlanView& view : plan().results) {
    result_views_.emplace_back(view, symbols_);
    results_.emplace_back().meta = view.meta;
  }
}

void Replay::bind(std::size_t index, const Tensor& tensor) {
  const Plan& plan = *bound_.plan;
  CHECK(index < plan.inputs.size(), "plan {} has {} inputs", plan.name, plan.inputs.size());
  const auto slot = static_cast<std::size_t>(plan.inputs[index]);
  const PlanSlot& planned = plan.slots[slot];
  USER_CHECK(fits(planned.meta, tensor.meta), "[{}] input {} must be {}, but is {}", plan.name, planned.name,
             planned.meta.text(), tensor.meta.text());
  Tensor& bound = bound_.tensors[slot];
  const bool is_first = !bound.defined();
  const bool has_moved = is_first || bound.data() != tensor.data();
  if (has_moved && settings_.device != nullptr)
    settings_.device->check_is_here(tensor.storage->data(), fmt::format("[{}] input {}", plan.name, planned.name));
  bound = tensor;  // reuses the memory of the old type
  if (is_first) --unbound_;
  if (has_moved && list_ != nullptr) list_->rebind(slot);
}

void Replay::capture(ReplayMode mode) {
  if (mode == ReplayMode::none || captured_[index_of(mode)]) return;
  const bool is_whole = settings_.device == nullptr;  // one capture serves all sizes
  if (settings_.first_time_work != nullptr && is_whole)
    settings_.first_time_work->begin(FirstTime::capture,
                                     fmt::format("plan {}, {}", bound_.plan->name, replay_mode_text(mode)));
  const TimelineScope event(settings_.timeline, "capture", [&] {
    return TimelineEvent{bound_.plan->name, {{"mode", std::string(replay_mode_text(mode))}}};
  });
  Stopwatch watch;
  if (list_ == nullptr) list_ = std::make_unique<LaunchList>(bound_, symbols_);
  Captured captured{.stretches = cut_for_launch_graphs(*bound_.plan, mode), .launches = {}, .key = LaunchKey(*list_)};
  LaunchGraphBuilder& of_device =
      is_whole ? static_cast<LaunchGraphBuilder&>(host_) : settings_.device->graph_builder();
  LaunchGraphBuilder& graph_builder = settings_.graph_builder == nullptr ? of_device : *settings_.graph_builder;
  for (const Stretch& stretch : captured.stretches) {
    captured.launches.push_back(stretch.is_captured ? graph_builder.capture(*list_, stretch.first, stretch.last)
                                                    : nullptr);
    if (!stretch.is_captured) continue;
    captured.key.add(stretch.first, stretch.last);
    ++counts_.captures;
  }
  numbers_.reserve(std::max(numbers_.capacity(), captured.key.number_count()));
  captured_[index_of(mode)] = std::move(captured);
  const double milliseconds = watch.lap("capture");
  count_launch_graph(milliseconds);
  if (settings_.on_launch_graph && is_whole)
    settings_.on_launch_graph(fmt::format("{}: captured {} steps, {}, in {:.3f} ms", bound_.plan->name,
                                          bound_.plan->steps.size(), replay_mode_text(mode), milliseconds));
}

void Replay::count_launch_graph(double milliseconds) {
  counts_.launch_graph_milliseconds += milliseconds;
  if (settings_.first_time_work != nullptr) settings_.first_time_work->took(FirstTime::capture, milliseconds);
}

void Replay::capture_bound(ReplayMode mode) {
  if (mode == ReplayMode::none) return;
  read_symbols();
  capture(mode);
  resolve();
  capture_sizes(mode);
}

// Captures the current sizes if that is not done yet. Returns whether they can be replayed.
bool Replay::capture_sizes(ReplayMode mode) {
  if (settings_.device == nullptr) return true;
  const Captured& captured = *captured_[index_of(mode)];
  const std::size_t room = numbers_.capacity();
  captured.key.numbers(numbers_);
  counts_.allocations += numbers_.capacity() == room ? 0 : 1;
  const auto is_of_now = [&](const SizeGraph& known) { return known.mode == mode && known.numbers == numbers_; };
  for (const SizeGraph& known : size_graphs_)
    if (!known.failure.empty() && is_of_now(known)) return false;
  if (std::all_of(captured.launches.begin(), captured.launches.end(),
                  [](const auto& launches) { return launches == nullptr || launches->has_capture(); }))
    return true;
  if (settings_.first_time_work != nullptr)
    settings_.first_time_work->begin(FirstTime::capture, fmt::format("plan {}, {}, {}", bound_.plan->name,
                                                                     replay_mode_text(mode), captured.key.text()));
  std::erase_if(size_graphs_, is_of_now);  // captured again if a tensor has moved
  const SizeGraph& made = size_graphs_.emplace_back(build_launch_graphs(mode));
  count_launch_graph(made.milliseconds);
  const std::string what =
      made.failure.empty()
          ? fmt::format("captured {} launches, {}, {}, in {:.3f} ms, {} bytes of the device", made.cost.nodes,
                        replay_mode_text(mode), made.text, made.milliseconds, made.cost.device_bytes)
          : fmt::format("{}, {}, runs step by step, because it could not be captured: {}", replay_mode_text(mode),
                        made.text, made.failure);
  if (settings_.on_launch_graph) settings_.on_launch_graph(fmt::format("{}: {}", bound_.plan->name, what));
  return made.failure.empty();
}

SizeGraph Replay::build_launch_graphs(ReplayMode mode) {
  const Captured& captured = *captured_[index_of(mode)];
  SizeGraph made{.mode = mode, .numbers = numbers_, .text = captured.key.text(), .cost = {}, .failure = {}};
  const TimelineScope event(settings_.timeline, "capture", [&] {
    return TimelineEvent{bound_.plan->name, {{"mode", std::string(replay_mode_text(mode))}, {"sizes", made.text}}};
  });
  Stopwatch watch;
  try {
    for (const auto& launches : captured.launches) {
      if (launches == nullptr) continue;
      const LaunchGraphCost cost = launches->prepare();
      made.cost.nodes += cost.nodes;
      made.cost.device_bytes += cost.device_bytes;
    }
  } catch (const DeviceError& error) {
    if (settings_.device->is_broken()) throw;
    made.failure = error.what();
    for (const auto& launches : captured.launches)
      if (launches != nullptr) launches->forget();
  }
  made.milliseconds = watch.lap("capture");
  return made;
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

void Replay::run(ReplayMode mode) {
  const FirstTimeScope counts(settings_.first_time_work);
  read_symbols();
  const bool has_rows = std::find(values_.begin(), values_.end(), 0) == values_.end();
  if (!has_rows && gives_rows_alone()) return;
  if (!has_rows) mode = ReplayMode::none;  // captures have at least one row
  capture(mode);
  ++counts_.runs;
  if (on_start) {  // it reads the bound tensors
    if (settings_.device != nullptr) settings_.device->synchronize();
    const FirstTimeScope not_of_the_run(nullptr);
    on_start();
  }
  if (mode == ReplayMode::none) return run_all_steps(observer);
  resolve();
  if (!capture_sizes(mode)) return run_all_steps(observer);
  const Captured& captured = *captured_[index_of(mode)];
  if (settings_.check) return run_checked(captured);
  run_captured(captured, observer);
}

// Whether all tensor results are empty, so that nothing must be computed when a symbol is 0. KV pages stay as they are.
bool Replay::gives_rows_alone() const {
  for (std::size_t i = 0; i < result_views_.size(); ++i)
    if (plan().results[i].meta.kind == MetaKind::tensor && !result_views_[i].is_empty(values_)) return false;
  return true;
}

void Replay::run_checked(const Captured& captured) {
  const auto wait = [this] {
    if (settings_.device != nullptr) settings_.device->synchronize();
  };
  wait();
  CheckedRuns runs{.replay =
                       [&](const StepObserver& observe) {
                         run_captured(captured, observe);
                         wait();
                       },
                   .step_by_step =
                       [&](const StepObserver& observe) {
                         run_all_steps(observe ? observe : observer);
                         wait();
                       },
                   .view = [&](const PlanView& view) { return numbered(view).resolve(bound_, values_); }};
  if (hides_memory()) {
    runs.copy = [this](void* to, const void* from, std::size_t bytes) { settings_.device->copy(to, from, bytes); };
    runs.wait = wait;
  }
  check_replay(bound_, runs);
}

// An observer reads the step's results, so a device must have finished the step.
template <class Run>
void Replay::launch(std::size_t step, const StepObserver& observe, Run run) {
  {
    const TimelineScope event(settings_.timeline, "launch", [&] { return launch_event(plan().steps[step]); });
    run();
  }
  if (!observe) return;
  if (settings_.device != nullptr) settings_.device->synchronize();
  const FirstTimeScope not_of_the_run(nullptr);
  observe(step);
}

// A device replays its captured graph as one launch, so it has no single launches to show.
bool Replay::shows_launches() const { return settings_.timeline != nullptr && settings_.device == nullptr; }

void Replay::run_captured(const Captured& captured, const StepObserver& observe) {
  for (std::size_t i = 0; i < captured.stretches.size(); ++i) {
    const Stretch& stretch = captured.stretches[i];
    if (!stretch.is_captured) {
      run_steps(stretch.first, stretch.last, observe);
    } else if (!observe && launch_times == nullptr && !shows_launches()) {
      const TimelineScope event(settings_.timeline, "replay", [&] { return TimelineEvent{bound_.plan->name}; });
      captured.launches[i]->replay();
    } else {
      for (std::size_t step = stretch.first; step < stretch.last; ++step)
        launch(step, observe, [&] { list_->run_one(step, launch_times); });
    }
  }
}

void Replay::run_steps(std::size_t first, std::size_t last, const StepObserver& observe) {
  for (std::size_t i = first; i < last; ++i) launch(i, observe, [&] { steps_->run(i, values_, launch_times); });
}

std::optional<std::int64_t> Replay::arena_bytes_taken() const {
  if (settings_.device != nullptr || counts_.runs == 0) return std::nullopt;
  return resident_bytes({bound_.arena->data(), static_cast<std::size_t>(bound_.arena->bytes())});
}

const Tensor& Replay::result(std::size_t index) const {
  Tensor& result = results_.at(index);
  result_views_[index].resolve(bound_, values_, result);
  return result;
}

// Looks up the view's symbols, for callers that inspect a view. Steps have their views already.
SymbolicView Replay::numbered(const PlanView& view) const {
  ++counts_.look_ups;
  ++counts_.allocations;
  return {view, symbols_};
}

Tensor Replay::tensor(const PlanView& view) const {
  Tensor tensor{.meta = view.meta};
  numbered(view).resolve(bound_, values_, tensor);
  return tensor;
}

bool Replay::hides_memory() const {
  return settings_.device != nullptr && !settings_.device->facts().host_reads_memory;
}

// A batch is in memory that both the host and the device read.
Tensor Replay::tensor_on_host(const PlanView& view) const {
  const Tensor there = tensor(view);
  return hides_memory() && view.meta.kind != MetaKind::batch ? settings_.device->download(there) : there;
}

}  // namespace weft
