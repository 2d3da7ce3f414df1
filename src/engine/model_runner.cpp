#include "engine/model_runner.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "base/effective_options.h"
#include "base/error.h"
#include "codegen/row_compiler.h"
#include "compiler/interpret.h"
#include "compiler/piece_graph.h"
#include "compiler/replay_settings.h"
#include "compiler/token_ranges.h"
#include "engine/padded_step.h"
#include "passes/pattern_pass.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"
#include "tensor/convert.h"

namespace weft {
namespace {

DType dtype_named(const std::string& text) {
  const auto dtype = dtype_from_text(text);
  CHECK(dtype.has_value(), "the options table lets through the dtype {}", text);
  return *dtype;
}

// A GGUF file names no dtype of the residual stream.
DType default_dtype(const Checkpoint& checkpoint, DeviceType device) {
  return checkpoint.is_gguf() && device != DeviceType::cpu ? DType::bf16 : checkpoint.config().dtype;
}

ModelFacts make_facts(const Options& options, const Checkpoint& checkpoint, DeviceType device) {
  const ModelConfig& config = checkpoint.config();
  ModelFacts facts;
  facts.config = config;
  facts.dtype = options.dtype == "auto" ? default_dtype(checkpoint, device) : dtype_named(options.dtype);
  facts.fast = options.activation_precision == "fast";
  facts.scales_by_group = device != DeviceType::cpu;
  const DType pages = facts.fast ? DType::f16 : DType::f32;
  facts.kv = {.dtype = options.kv_cache_dtype == "auto" ? pages : dtype_named(options.kv_cache_dtype),
              .block = options.block_size,
              .heads = config.kv_head_count,
              .head_dim = config.head_dim};
  if (options.max_model_len > 0) {
    USER_CHECK(options.max_model_len <= config.context_length,
               "[--max-model-len] must be at most the model's context of {}, but is {}", config.context_length,
               options.max_model_len);
    facts.config.context_length = options.max_model_len;
  }
  return facts;
}

// The memory of one sequence as long as the context: its KV pages, and the rotary table, which has a row for each
// token.
void check_context_fits(const ModelFacts& facts) {
  const std::int64_t per_token =
      facts.config.layer_count * bytes_of(facts.kv.dtype, 2 * facts.kv.heads * facts.kv.head_dim) +
      bytes_of(DType::f32, facts.config.rope.rotary_dim);
  const std::int64_t machine = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  USER_CHECK(facts.config.context_length <= machine / per_token,
             "[--max-model-len] a sequence of {} tokens needs {} bytes for each of them, but this machine has {} bytes "
             "of memory; it must be at most {} here",
             facts.config.context_length, per_token, machine, machine / per_token);
}

}  // namespace

ModelRunner::ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
                         Stopwatch* watch)
    : context_(std::move(context)), checkpoint_(std::move(checkpoint)), device_(context_->stream_device.get()) {
  const Options& options = context_->options;
  context_->first_time_work->set_loading();
  model_ = models.find(checkpoint_.architecture(), checkpoint_.path());
  facts_ = make_facts(options, checkpoint_, context_->device.id.type);
  if (model_.check) model_.check(facts_.config);
  model_.check_weights(checkpoint_, facts_.config);
  check_context_fits(facts_);
  weights_ = std::make_unique<Weights>(*context_, checkpoint_, facts_);
  max_tokens_ = std::min(options.max_num_batched_tokens, facts_.config.context_length);
  no_logits_ = Tensor::empty(Meta::tensor(facts_.dtype, {0, vocabulary_size()}));
  const TracedModel traced{context_->ops, facts_, model_, *weights_, checkpoint_.is_gguf(), max_tokens_};
  const TracedGraph forward = trace_graph(traced, "forward", model_.forward);
  const TracedGraph head = trace_graph(traced, "head", model_.head);
  traced_forward_ = forward.graph;
  traced_head_ = head.graph;
  notes_ = weights_->costs_of_options(forward.params);
  if (options.evaluate_guards) {
    forward_guards_ = evaluate_guards(traced, forward, model_.forward);
    head_guards_ = evaluate_guards(traced, head, model_.head);
  }
  forward_ranges_ = token_ranges(*traced_forward_, *context_, max_tokens_).ranges;
  head_ranges_ = {{1, max_logit_rows()}};
  Stopwatch unread;
  Stopwatch& laps = watch == nullptr ? unread : *watch;
  laps.lap("trace");
  if (const std::string eager = eager_option(options); !eager.empty()) {
    check_host_reads(*context_, eager);
    return;
  }
  if (tune_sizes(*traced_forward_, *context_, forward_ranges_)) laps.lap("tune");
  forward_ = compile_all(*traced_forward_, forward.params, forward_ranges_, laps);
  head_ = compile_all(*traced_head_, head.params, head_ranges_, laps);
  checkpoint_.drop_pages();
  dispatcher_ = CaptureDispatcher(capture_settings(options, max_tokens_, device_ != nullptr));
  if (device_ != nullptr) padding_ = StepBuffer(padded_limits());
  if (captures_before_ready(options) && device_ == nullptr) capture_programs();
  laps.lap("capture");
  check_piece_names("--eager-piece", options.eager_piece, records_);
  if (!options.expect_fusions.empty())
    check_expected_fusions(parse_expected_fusions(options.expect_fusions, *context_, declared_fusions()), *context_,
                           records_);
}

ExpectedFusions ModelRunner::declared_fusions() const {
  ExpectedFusions declared;
  for (const auto& [fusion, count] : model_.fusions_per_layer) {
    const std::vector<const Pattern*> patterns = patterns_named(context_->patterns, fusion);
    // What a pattern ends in: without it the model does not quantize its activations so.
    const auto is_end = [&](const auto& node) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const Pattern* pattern) { return node->name == pattern->before.nodes.back().name; });
    };
    const NodeList& nodes = traced_forward_->nodes();
    if (std::any_of(nodes.begin(), nodes.end(), is_end))
      declared[fusion] = count * static_cast<int>(facts_.config.layer_count);
  }
  return declared;
}

ModelRunner::~ModelRunner() = default;

std::int64_t ModelRunner::max_logit_rows() const {
  constexpr std::int64_t kRowsToScore = 32;
  return std::min(max_tokens_, std::max(context_->options.max_num_seqs, kRowsToScore));
}

std::unique_ptr<CompiledModel> ModelRunner::compile_all(const Graph& traced, const std::vector<TracedParam>& params,
                                                        std::vector<TokenRange> ranges, Stopwatch& watch) {
  const PassRunnerOptions passes = pass_runner_options(context_->options);
  const bool is_forward = forward_ == nullptr;
  CompiledRanges compiled =
      find_or_compile(traced, *context_, std::move(ranges), passes, is_forward ? &forward_key_ : nullptr);
  if (is_forward) forward_was_found_ = compiled.records.empty();
  watch.lap("compile");
  auto model = std::make_unique<CompiledModel>();
  model->ranges = RangeTable(compiled.ranges);
  std::map<const void*, ModelProgram*> known;  // by Plan, or by graph where there are no Plans
  for (std::size_t i = 0; i < compiled.ranges.size(); ++i) {
    const bool has_plan = !compiled.plans.empty();
    ModelProgram*& program =
        known[has_plan ? static_cast<const void*>(compiled.plans[i].get()) : compiled.records[i].split.get()];
    if (program == nullptr) {
      model->programs.push_back(has_plan ? std::make_unique<ModelProgram>(compiled.plans[i], *context_)
                                         : std::make_unique<ModelProgram>(compiled.records[i], *context_));
      program = model->programs.back().get();
      program->record = range_count_ + i;
      if (has_plan && (context_->options.cudagraph_copy_inputs || device_ != nullptr))
        program->stable = make_stable_inputs(*compiled.plans[i]);
      cuda::StreamDevice* const device = has_plan ? device_ : nullptr;
      for (const TracedParam& param : params)
        program->bind(param.name, device_weights_.tensor(device, *weights_, param));
    }
    model->by_range.push_back(program);
  }
  range_count_ += compiled.ranges.size();
  for (CompileRecord& record : compiled.records) records_.push_back(std::move(record));
  watch.lap("weights");
  return model;
}

StepLimits ModelRunner::step_limits() const {
  const std::int64_t block = facts_.kv.block;
  return {.rows = max_tokens_,
          .sequences = std::min(context_->options.max_num_seqs, max_tokens_),
          .blocks = (facts_.config.context_length + block - 1) / block};
}

// On a device one more sequence makes up a captured size.
StepLimits ModelRunner::padded_limits() const {
  StepLimits most = step_limits();
  most.sequences += device_ == nullptr ? 0 : 1;
  return most;
}

std::unique_ptr<StableInputs> ModelRunner::make_stable_inputs(const Plan& plan) const {
  const StepLimits most = padded_limits();
  context_->first_time_work->begin(FirstTime::allocate, fmt::format("the inputs of plan {}", plan.name));
  return std::make_unique<StableInputs>(plan, most.sequences, most.blocks, device_);
}

void ModelRunner::capture_programs() {
  for (const CaptureDispatcher::Dispatch& capture : dispatcher_.captures()) {
    forward_->capture(capture.mode, capture.descriptor.num_tokens);
    head_->capture(capture.mode, max_logit_rows());
  }
}

// On a device each size is captured with the addresses of its inputs, KV pages among them.
void ModelRunner::capture_sizes() {
  for (const CaptureDispatcher::Dispatch& capture : dispatcher_.captures()) {
    ModelProgram& forward = forward_->program_for(capture.descriptor.num_tokens);
    bind_step(forward, empty_step(capture.descriptor.num_tokens, facts_.kv.block, padding_));
    forward.replay->capture_bound(capture.mode);
  }
}

void ModelRunner::set_ready() {
  const bool captures = captures_before_ready(context_->options) && forward_plan() != nullptr && !pages_.empty();
  if (device_ != nullptr && captures) capture_sizes();
  return_row_compiler_memory();
  context_->first_time_work->set_ready(context_->options.forbid_lazy);
}

ReplayReport ModelRunner::replay_report() const {
  ReplayReport report{
      .mode = dispatcher_.mode(), .sizes = dispatcher_.sizes(), .is_lazy = !captures_before_ready(context_->options)};
  for (const CompiledModel* model : {forward_.get(), head_.get()})
    for (std::size_t i = 0; model != nullptr && i < model->programs.size(); ++i)
      if (const Replay* replay = model->programs[i]->replay.get(); replay != nullptr) report.add(*replay);
  for (std::size_t i = 0; i < kFirstTimeKinds; ++i)
    report.first_time[i] = context_->first_time_work->counts(static_cast<FirstTime>(i));
  return report;
}

std::int64_t ModelRunner::kv_bytes_per_page() const {
  return bytes_of(facts_.kv.dtype, kv_page_elements(facts_.kv)) * facts_.config.layer_count;
}

std::vector<GuardReport> ModelRunner::guard_reports() const {
  if (!forward_guards_) return {};
  return {forward_guards_->report(), head_guards_->report()};
}

MemoryUse ModelRunner::memory_use() const {
  MemoryUse use{.weights = weights_->loaded_bytes() + device_weights_.bytes(),
                .weights_of_device = device_weights_.bytes()};
  for (const CompiledModel* model : {forward_.get(), head_.get()})
    for (std::size_t i = 0; model != nullptr && i < model->programs.size(); ++i) {
      const Replay* replay = model->programs[i]->replay.get();
      use.activations_planned += replay == nullptr ? 0 : replay->plan().arena_bytes;
      if (const auto taken = replay == nullptr ? std::nullopt : replay->arena_bytes_taken())
        use.activations_measured = use.activations_measured.value_or(0) + *taken;
    }
  const std::int64_t block = facts_.kv.block;
  use.kv_of_longest_sequence = (facts_.config.context_length + block - 1) / block * kv_bytes_per_page();
  return use;
}

void ModelRunner::allocate_pages(std::int64_t pages) {
  pages_.clear();
  for (std::int64_t i = 0; i < facts_.config.layer_count; ++i)
    pages_.push_back(device_ != nullptr && forward_plan() != nullptr ? device_->zeros(Meta::pages(facts_.kv), pages)
                                                                     : Tensor::empty(Meta::pages(facts_.kv), pages));
  if (forward_ == nullptr) return;
  for (auto& program : forward_->programs)
    for (std::size_t i = 0; i < pages_.size(); ++i) program->bind("kv." + std::to_string(i), pages_[i]);
}

const Tensor& ModelRunner::step(const StepInput& input) {
  CHECK(!pages_.empty(), "a step needs KV pages: call allocate_pages first");
  CHECK(input.rows() <= max_tokens_, "a step takes at most {} rows, but was given {}", max_tokens_, input.rows());
  if (forward_ != nullptr) return step_compiled(input);
  check_guards(input);
  return logits_ = step_eager(input);
}

void ModelRunner::check_guards(const StepInput& input) {
  if (!forward_guards_) return;
  const std::int64_t rows = input.rows(), wanted = input.logit_row_count();
  const std::string tokens = tokens_symbol().symbol_name();
  forward_guards_->check({{tokens, rows}});
  if (wanted > 0) head_guards_->check({{tokens, rows}, {rows_symbol().symbol_name(), wanted}});
}

void ModelRunner::copy_logits(const Tensor& logits, std::int64_t row, std::span<float> into) const {
  const auto width = static_cast<std::int64_t>(into.size());
  CHECK(logits.meta.shape[1] == Dim(width), "a row of logits has {} elements", logits.meta.shape[1].text());
  convert_row(logits.meta.dtype, logits.data() + bytes_of(logits.meta.dtype, row * width), DType::f32,
              reinterpret_cast<std::byte*>(into.data()), width);
}

const Tensor& ModelRunner::run_step(const StepInput& input) {
  const bool is_decode = input.rows() == batch_of(input.batch).sequences;  // one row each
  const CaptureDispatcher::Dispatch found =
      dispatcher_.dispatch({.num_tokens = input.rows(), .uniform_decode = is_decode});
  const bool is_padded = device_ != nullptr && found.mode != ReplayMode::none;
  const StepInput& step =
      is_padded ? padded_step(input, found.descriptor.num_tokens, facts_.kv.block, padding_) : input;
  check_guards(step);
  ModelProgram& forward = forward_->program_for(step.rows());
  bind_step(forward, step);
  forward.run(found.mode);
  if (input.logit_row_count() == 0) return no_logits_;
  ModelProgram& head = head_->program_for(input.logit_row_count());
  head.bind("rows", input.logit_rows);
  const bool is_on_device = device_ != nullptr && head.replay != nullptr;
  if (!is_on_device) {
    head.bind("hidden", forward.result(0));
    head.run(found.mode);
    return head.result(0);
  }
  // Two counts decide what it launches, of tokens and of rows: it is not captured.
  head.bind_in_place("hidden", forward.result(0));
  head.run(ReplayMode::none);
  return logits_ = device_->download(head.result(0));
}

void ModelRunner::bind_step(ModelProgram& forward, const StepInput& input) const {
  forward.bind("ids", input.ids);
  forward.bind("positions", input.positions);
  forward.bind("slots", input.slots);
  forward.bind("batch", input.batch);
}

// The places of a step's inputs are the next one's: nothing of it may still run then.
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

Tensor ModelRunner::step_eager(const StepInput& input) {
  std::map<std::string, Tensor> inputs{
      {"ids", input.ids}, {"positions", input.positions}, {"slots", input.slots}, {"batch", input.batch}};
  for (std::size_t i = 0; i < pages_.size(); ++i) inputs["kv." + std::to_string(i)] = pages_[i];
  EagerEvaluator evaluator(*context_, forward_ranges_[range_of(forward_ranges_, input.rows())]);
  EagerBuilder builder(facts_, model_, *weights_, checkpoint_.is_gguf(), evaluator, std::move(inputs));
  builder.observer = linear_observer_;
  const Values results = model_.forward(builder);
  if (input.logit_row_count() == 0) return no_logits_;
  EagerEvaluator head_evaluator(*context_, head_ranges_[range_of(head_ranges_, input.logit_row_count())]);
  EagerBuilder head(facts_, model_, *weights_, checkpoint_.is_gguf(), head_evaluator,
                    {{"hidden", results[0].tensor()}, {"rows", input.logit_rows}});
  return model_.head(head)[0].tensor();
}

const Plan* ModelRunner::forward_plan() const {
  return forward_ == nullptr ? nullptr : forward_->programs.front()->plan();
}

const std::vector<CompileRecord>& ModelRunner::records() {
  if (records_.size() == range_count_) return records_;
  PassRunnerOptions passes = pass_runner_options(context_->options);
  passes.stop_after = Stage::split;
  records_ = compile_ranges(*traced_forward_, *context_, forward_ranges_, passes).records;
  for (CompileRecord& record : compile_ranges(*traced_head_, *context_, head_ranges_, passes).records)
    records_.push_back(std::move(record));
  return records_;
}

std::vector<StoredPlans> ModelRunner::store_plans() const {
  USER_CHECK(forward_plan() != nullptr, "[compile] nothing is compiled into plans with these options");
  std::vector<StoredPlans> stored;
  for (const auto& [traced, model] : {std::pair(&*traced_forward_, &*forward_), {&*traced_head_, &*head_}}) {
    std::vector<const Plan*> plans;
    for (const ModelProgram* program : model->by_range) plans.push_back(program->plan());
    stored.push_back(weft::store_plans(*traced, *context_, model->ranges.all(), plans));
  }
  return stored;
}

CacheUse ModelRunner::cache_use() const { return weft::cache_use(*context_, forward_key_, forward_was_found_); }

const Plan* ModelRunner::head_plan() const { return head_ == nullptr ? nullptr : head_->programs.front()->plan(); }

void ModelRunner::set_linear_observer(LinearObserver observer) {
  CHECK(forward_ == nullptr, "the inputs of linear layers are seen in eager mode alone");
  linear_observer_ = std::move(observer);
}

void ModelRunner::verify_pieces(PieceVerification& verification) {
  USER_CHECK(forward_plan() != nullptr, "[verify] there is nothing compiled to verify with these options");
  for (CompiledModel* model : {forward_.get(), head_.get()})
    for (auto& program : model->programs) verification.watch(*program->replay, records()[program->record]);
}

void ModelRunner::set_launch_times(LaunchTimes* times) {
  CHECK(forward_plan() != nullptr, "there are no Plans whose launches could be timed");
  for (CompiledModel* model : {forward_.get(), head_.get()})
    for (auto& program : model->programs) program->replay->launch_times = times;
}

void ModelRunner::set_observer(std::function<void(const PlanStep&)> observer) {
  for (CompiledModel* model : {forward_.get(), head_.get()}) {
    if (model == nullptr) continue;
    for (auto& program : model->programs) {
      Replay* replay = program->replay.get();
      if (replay == nullptr) continue;
      replay->observer = {};
      if (observer) replay->observer = [replay, observer](std::size_t step) { observer(replay->plan().steps[step]); };
    }
  }
}

}  // namespace weft
