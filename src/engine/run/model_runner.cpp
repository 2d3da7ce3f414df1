#include "engine/run/model_runner.h"

#include <algorithm>

#include "base/error.h"
#include "base/resident_memory.h"
#include "codegen/row_compiler.h"
#include "compiler/replay_settings.h"
#include "compiler/run/interpret.h"
#include "engine/run/padded_step.h"
#include "kernels/provider.h"
#include "options/effective_options.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"
#include "tensor/convert.h"

namespace weft {
namespace {

// Opens libraries early: steps that run op by op choose a kernel when they reach it, and a choice may open a library.
void open_libraries(const Context& context) {
  std::set<std::string> listed;
  for (const auto& [name, op] : context.ops.all())
    for (std::string& provider : context.priorities.list(name)) listed.insert(std::move(provider));
  const FirstTimeScope counts(context.first_time_work.get());
  for (const ProviderEntry& provider : provider_table())
    if (provider.version != nullptr && listed.contains(provider.name)) provider.version();
}

TimelineEvent step_event(const StepInput& input) {
  return {fmt::format("step of {}", input.rows()),
          {{"sequences", std::to_string(batch_of(input.batch).sequences)},
           {"logits", std::to_string(input.logit_row_count())}}};
}

}  // namespace

ModelRunner::ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
                         Stopwatch* watch)
    : context_(std::move(context)),
      model_(std::make_unique<ModelCompilation>(context_, std::move(checkpoint), models)),
      device_(context_->stream_device.get()),
      opening_(device_ == nullptr ? 0 : device_->openings()) {
  const Options& options = context_->options;
  Stopwatch unread;
  Stopwatch& laps = watch == nullptr ? unread : *watch;
  const std::string excess = model_->describe_excess_of_context();
  USER_CHECK(excess.empty(), "{}", excess);
  notes_ = model_->notes();
  no_logits_ = Tensor::empty(Meta::tensor(facts().dtype, {0, vocabulary_size()}));
  laps.lap("trace");
  if (const std::string eager = eager_option(options); !eager.empty()) {
    check_host_reads(*context_, eager);
    prepare_eager();
    open_adapters();
    laps.lap("weights");
    return;
  }
  model_->compile(&laps);
  load_programs();
  open_adapters();
  if (options.check_replay && device_ == nullptr && forward_plan() != nullptr) check_against_graphs();
  laps.lap("weights");
  dispatcher_ = LaunchGraphDispatcher(launch_graph_settings(options, max_tokens(), pads_steps()));
  if (pads_steps()) padding_ = StepBuffer(padded_limits());
  if (captures_before_ready(options) && device_ == nullptr) capture_programs();
  laps.lap("capture");
}

ModelRunner::~ModelRunner() = default;

void ModelRunner::prepare_eager() {
  open_libraries(*context_);
  for (const ModelGraph* graph : model_->graphs())
    for (const TracedParam& param : graph->params) device_weights_.tensor(nullptr, weights(), param);
  model_->checkpoint().drop_pages();
}

void ModelRunner::open_adapters() {
  adapters_ = std::make_unique<AdapterSlots>(model_->adapters(), weights(), model_->adapted_products());
}

void ModelRunner::load_programs() {
  for (const PhaseGraphs& phase : model_->phases()) phases_.push_back({load(phase.forward), load(phase.head)});
  model_->checkpoint().drop_pages();
  const Plan* const head = head_plan();
  if (device_ == nullptr || head == nullptr) return;
  const Meta& logits = head->results[0].meta;
  logits_ = {.meta = logits, .storage = Storage::allocate(logits.bytes().range(head->bounds).hi)};
}

std::unique_ptr<RangePrograms> ModelRunner::load(const ModelGraph& graph) {
  auto loaded = std::make_unique<RangePrograms>();
  loaded->ranges = RangeTable(graph.ranges);
  std::map<const void*, ModelProgram*> known;  // by Plan, or by graph if there are no Plans
  const bool has_plans = !graph.plans.empty();
  if (device_ != nullptr && has_plans) loaded->arena = make_arena(graph);
  for (std::size_t i = 0; i < graph.ranges.size(); ++i) {
    const std::size_t number = graph.first_record + i;
    ModelProgram*& program =
        known[has_plans ? static_cast<const void*>(graph.plans[i].get()) : model_->records()[number].split.get()];
    if (program == nullptr) {
      loaded->programs.push_back(has_plans ? std::make_unique<ModelProgram>(graph.plans[i], *context_, loaded->arena)
                                           : std::make_unique<ModelProgram>(model_->records()[number], *context_));
      program = loaded->programs.back().get();
      program->record = number;
      if (has_plans && (context_->options.cudagraph_copy_inputs || device_ != nullptr))
        program->stable = make_stable_inputs(*graph.plans[i]);
      for (const TracedParam& param : graph.params)
        program->bind(param.name, device_weights_.tensor(has_plans ? device_ : nullptr, weights(), param));
    }
    loaded->by_range.push_back(program);
  }
  return loaded;
}

std::shared_ptr<Storage> ModelRunner::make_arena(const ModelGraph& graph) const {
  std::int64_t most = 1;
  for (const auto& plan : graph.plans) most = std::max(most, plan->arena_bytes);
  return device_->allocate(most);
}

StepLimits ModelRunner::step_limits() const {
  const std::int64_t block = facts().kv.block;
  return {.rows = max_tokens(),
          .sequences = std::min(context_->options.max_num_seqs, max_tokens()),
          .blocks = (facts().config.context_length + block - 1) / block};
}

// On the host one launch list serves steps of every size, so they are padded only if the option asks for it.
bool ModelRunner::pads_steps() const { return device_ != nullptr || context_->options.pad_steps; }

// Steps that are not pure decode are padded to a captured size with one dummy sequence.
StepLimits ModelRunner::padded_limits() const {
  StepLimits most = step_limits();
  most.sequences += pads_steps() ? 1 : 0;
  return most;
}

std::unique_ptr<StableInputs> ModelRunner::make_stable_inputs(const Plan& plan) const {
  const StepLimits most = padded_limits();
  context_->first_time_work->begin(FirstTime::allocate, fmt::format("the inputs of plan {}", plan.name));
  return std::make_unique<StableInputs>(plan, most.sequences, most.blocks, device_);
}

void ModelRunner::capture_programs() {
  for (const LaunchGraphDispatcher::Dispatch& capture : dispatcher_.captures())
    for (const PhasePrograms& phase : phases_) {
      phase.forward->capture(capture.mode, capture.descriptor.num_tokens);
      phase.head->capture(capture.mode, max_logit_rows());
    }
}

std::vector<RangePrograms*> ModelRunner::programs() const {
  std::vector<RangePrograms*> programs;
  for (const PhasePrograms& phase : phases_) programs.insert(programs.end(), {phase.forward.get(), phase.head.get()});
  return programs;
}

// A device captures each size with the addresses of its inputs, including the KV pages, so the inputs are bound first.
void ModelRunner::capture_sizes(Phase phase) {
  const PhasePrograms& programs = programs_of(phase);
  StepBuffer nothing(StepLimits{});
  nothing.begin(0, phase);
  for (const LaunchGraphDispatcher::Dispatch& capture : dispatcher_.captures()) {
    const StepInput& step = padded(nothing.input(), capture);
    ModelProgram& forward = programs.forward->program_for(step.rows());
    bind_step(forward, step);
    forward.replay->capture_bound(capture.mode);
    if (!capture.descriptor.uniform) continue;
    ModelProgram& head = programs.head->program_for(step.logit_row_count());
    bind_head(head, forward, step);
    head.replay->capture_bound(capture.mode);
  }
}

void ModelRunner::set_ready() {
  const bool captures = captures_before_ready(context_->options) && forward_plan() != nullptr && page_count_ > 0;
  for (std::size_t phase = 0; phase < phases_.size() && device_ != nullptr && captures; ++phase)
    capture_sizes(static_cast<Phase>(phase));
  return_row_compiler_memory();
  context_->first_time_work->set_ready(context_->options.forbid_lazy);
}

ReplayReport ModelRunner::replay_report() const {
  ReplayReport report{.mode = dispatcher_.mode(),
                      .sizes = dispatcher_.sizes(),
                      .is_lazy = !captures_before_ready(context_->options),
                      .padded_rows = padded_rows_};
  for (const RangePrograms* graph : programs())
    for (const auto& program : graph->programs)
      if (program->replay != nullptr) report.add(*program->replay);
  for (std::size_t i = 0; i < kFirstTimeKinds; ++i)
    report.first_time[i] = context_->first_time_work->counts(static_cast<FirstTime>(i));
  return report;
}

MemoryUse ModelRunner::memory_use() const {
  MemoryUse use{.weights = weights().loaded_bytes() + device_weights_.bytes(),
                .weights_of_device = device_weights_.bytes(),
                .activations_planned = model_->arena_bytes(),
                .kv_of_longest_sequence = model_->kv_bytes_of_longest_sequence()};
  for (const RangePrograms* graph : programs())
    for (const auto& program : graph->programs)
      if (const auto taken = program->replay == nullptr ? std::nullopt : program->replay->arena_bytes_taken())
        use.activations_measured = use.activations_measured.value_or(0) + *taken;
  if (device_ == nullptr)
    for (const Tensor& pages : pages_)
      if (const auto taken = resident_bytes({pages.data(), static_cast<std::size_t>(pages.storage->bytes())}))
        use.kv_measured = use.kv_measured.value_or(0) + *taken;
  return use;
}

bool ModelRunner::is_broken() const {
  return device_ != nullptr && (!is_whole_ || device_->is_broken() || device_->openings() != opening_);
}

void ModelRunner::reopen() {
  CHECK(device_ != nullptr && page_count_ > 0, "there is no device that was ready");
  is_whole_ = false;
  last_forward_ = nullptr;
  phases_.clear();
  pages_.clear();
  logits_ = {};
  device_weights_ = {};
  if (device_->is_broken()) device_->reopen();  // otherwise it is open again already
  opening_ = device_->openings();
  context_->first_time_work->set_loading();
  load_programs();
  allocate_pages(page_count_);
  set_ready();
  is_whole_ = true;
}

const Tensor& ModelRunner::step(const StepInput& input) {
  CHECK(page_count_ > 0, "a step needs KV pages: call allocate_pages first");
  CHECK(input.rows() <= max_tokens(), "a step takes at most {} rows, but was given {}", max_tokens(), input.rows());
  const TimelineScope event(context_->timeline.get(), "step", [&] { return step_event(input); });
  if (!phases_.empty()) return step_compiled(input);
  model_->check_guards(input.phase, input.rows(), input.logit_row_count());
  return logits_ = step_eager(input);
}

void ModelRunner::copy_row(const Tensor& rows, std::int64_t row, std::span<float> into) const {
  const auto width = static_cast<std::int64_t>(into.size());
  CHECK(rows.meta.shape[1] == Dim(width), "a row has {} elements", rows.meta.shape[1].text());
  convert_row(rows.meta.dtype, rows.data() + bytes_of(rows.meta.dtype, row * width), DType::f32,
              reinterpret_cast<std::byte*>(into.data()), width);
}

Tensor ModelRunner::hidden() const {
  const Tensor& hidden = last_forward_ == nullptr ? hidden_ : last_forward_->result(0);
  return has_pages_on_device() ? device_->download(hidden) : hidden;
}

const StepInput& ModelRunner::padded(const StepInput& input, const LaunchGraphDispatcher::Dispatch& to) {
  if (!pads_steps() || to.mode == ReplayMode::none) return input;
  const std::int64_t rows = to.descriptor.num_tokens;
  return to.descriptor.uniform ? padded_decode_step(input, rows, padded_limits().blocks, padding_)
                               : padded_step(input, rows, facts().kv.block, padding_);
}

const Tensor& ModelRunner::run_step(const StepInput& input) {
  // Without Plans each op allocates its tensors in each step, so that work is not counted.
  const FirstTimeScope counts(forward_plan() == nullptr ? nullptr : context_->first_time_work.get());
  const LaunchGraphDispatcher::Dispatch found =
      dispatcher_.dispatch({.num_tokens = input.rows(), .uniform_decode = is_decode_step(input)});
  const StepInput& step = padded(input, found);
  padded_rows_ += step.rows() - input.rows();
  model_->check_guards(step.phase, step.rows(), step.logit_row_count());
  const PhasePrograms& programs = programs_of(step.phase);
  ModelProgram& forward = programs.forward->program_for(step.rows());
  bind_step(forward, step);
  forward.run(found.mode);
  last_forward_ = &forward;
  if (input.logit_row_count() == 0) return no_logits_;
  ModelProgram& head = programs.head->program_for(step.logit_row_count());
  bind_head(head, forward, step);
  // The head's launches depend on two counts: of tokens, and of rows that need logits. A device has captures of the
  // head only if one count determines the other.
  head.run(device_ == nullptr || found.descriptor.uniform ? found.mode : ReplayMode::none);
  const bool is_here = device_ == nullptr || head.replay == nullptr;
  if (is_here && &step == &input) return head.result(0);
  Tensor wanted = head.result(0);
  wanted.meta.shape[0] = input.logit_row_count();
  if (is_here) return logits_ = std::move(wanted);
  device_->download(wanted, logits_);
  return logits_;
}

void ModelRunner::bind_step(ModelProgram& forward, const StepInput& input) const {
  forward.bind(StepTensor::ids, input.ids);
  forward.bind(StepTensor::positions, input.positions);
  forward.bind(StepTensor::slots, input.slots);
  forward.bind(StepTensor::batch, input.batch);
  if (forward.has(StepTensor::token_types)) forward.bind(StepTensor::token_types, input.token_types);
  if (forward.has(StepTensor::adapters)) forward.bind(StepTensor::adapters, input.adapters);
}

void ModelRunner::bind_head(ModelProgram& head, const ModelProgram& forward, const StepInput& input) const {
  head.bind(StepTensor::rows, input.logit_rows);
  if (head.has(StepTensor::adapters)) head.bind(StepTensor::adapters, input.adapters);
  if (device_ == nullptr) {
    head.bind(StepTensor::hidden, forward.result(0));
  } else {
    head.bind_in_place(StepTensor::hidden, forward.result(0));  // not copied: the device computed it there
  }
}

// The next step reuses the memory of this step's inputs, so this step must end before it returns.
const Tensor& ModelRunner::step_compiled(const StepInput& input) {
  if (device_ == nullptr) return run_step(input);
  try {
    const Tensor& logits = run_step(input);
    device_->synchronize();
    return logits;
  } catch (...) {
    device_->settle();
    throw;
  }
}

std::map<std::string, Tensor> ModelRunner::inputs_of(const StepInput& input) const {
  std::map<std::string, Tensor> inputs{
      {"ids", input.ids},     {"positions", input.positions},     {"slots", input.slots},
      {"batch", input.batch}, {"token_types", input.token_types}, {kAdapters, input.adapters}};
  const std::vector<LayerPages> layers = facts().pages();
  for (std::size_t i = 0; i < pages_.size(); ++i) inputs[layers[i].name] = pages_[i];
  return inputs;
}

Tensor ModelRunner::step_eager(const StepInput& input) {
  const PhaseGraphs& graphs = model_->graphs_of(input.phase);
  EagerEvaluator evaluator(*context_, graphs.forward.ranges[range_of(graphs.forward.ranges, input.rows())]);
  EagerBuilder builder(graphs.facts, model_->definition(), weights(), evaluator, inputs_of(input));
  builder.observer = linear_observer_;
  const Values results = model_->definition().forward(builder);
  hidden_ = results[0].tensor();
  if (input.logit_row_count() == 0) return no_logits_;
  EagerEvaluator head_evaluator(*context_, graphs.head.ranges[range_of(graphs.head.ranges, input.logit_row_count())]);
  EagerBuilder head(graphs.facts, model_->definition(), weights(), head_evaluator,
                    {{"hidden", results[0].tensor()}, {"rows", input.logit_rows}, {kAdapters, input.adapters}});
  return model_->definition().head(head)[0].tensor();
}

const Plan* ModelRunner::forward_plan() const {
  return phases_.empty() ? nullptr : phases_[0].forward->programs.front()->plan();
}

const Plan* ModelRunner::head_plan() const {
  return phases_.empty() ? nullptr : phases_[0].head->programs.front()->plan();
}

void ModelRunner::set_linear_observer(LinearObserver observer) {
  CHECK(phases_.empty(), "the inputs of linear layers are seen in eager mode alone");
  linear_observer_ = std::move(observer);
}

void ModelRunner::verify_pieces(PieceVerification& verification) {
  USER_CHECK(forward_plan() != nullptr, "[verify] there is nothing compiled to verify with these options");
  for (RangePrograms* graph : programs())
    for (auto& program : graph->programs) verification.watch(*program->replay, records()[program->record]);
}

// Replay compares a capture with its Plan. This compares the Plan with the graph that was compiled.
void ModelRunner::check_against_graphs() {
  verification_ = std::make_unique<PieceVerification>(*context_);
  verification_->fail_where_different();
  verify_pieces(*verification_);
}

void ModelRunner::set_launch_times(LaunchTimes* times) {
  CHECK(forward_plan() != nullptr, "there are no Plans whose launches could be timed");
  for (RangePrograms* graph : programs())
    for (auto& program : graph->programs) program->replay->launch_times = times;
}

void ModelRunner::set_observer(std::function<void(const PlanStep&)> observer) {
  for (RangePrograms* graph : programs()) {
    for (auto& program : graph->programs) {
      Replay* replay = program->replay.get();
      if (replay == nullptr) continue;
      replay->observer = {};
      if (observer) replay->observer = [replay, observer](std::size_t step) { observer(replay->plan().steps[step]); };
    }
  }
}

}  // namespace weft
