#include "engine/model_runner.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

DType dtype_named(const std::string& text) {
  const auto dtype = dtype_from_text(text);
  CHECK(dtype.has_value(), "the options table lets through the dtype {}", text);
  return *dtype;
}

ModelFacts make_facts(const Options& options, const ModelConfig& config) {
  ModelFacts facts;
  facts.config = config;
  facts.dtype = options.dtype == "auto" ? config.dtype : dtype_named(options.dtype);
  facts.fast = options.activation_precision == "fast";
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

Tensor tensor_of(std::span<const std::int64_t> values) {
  return Tensor::from_bytes(Meta::tensor(DType::i64, {static_cast<std::int64_t>(values.size())}), values.data());
}

}  // namespace

struct ModelRunner::Program {
  TokenRange range;
  std::map<std::string, std::size_t> inputs;  // by name: position among the graph's inputs
  std::unique_ptr<Replay> replay;

  void bind(const std::string& name, Tensor tensor) { replay->bind(inputs.at(name), std::move(tensor)); }
};

ModelRunner::ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models)
    : context_(std::move(context)), checkpoint_(std::move(checkpoint)) {
  const Options& options = context_->options;
  model_ = models.find(checkpoint_.architecture(), checkpoint_.path());
  facts_ = make_facts(options, checkpoint_.config());
  if (model_.check) model_.check(facts_.config);
  weights_ = std::make_unique<Weights>(*context_, checkpoint_, facts_);
  max_tokens_ = std::min(options.max_num_batched_tokens, facts_.config.context_length);
  if (options.enforce_eager || options.optimization_level == 0 || options.mode == "none") return;

  std::vector<TracedParam> forward_params, head_params;
  auto forward = trace("forward", model_.forward, forward_params);
  auto head = trace("head", model_.head, head_params);
  for (const TokenRange& range : ranges()) compile_program(*forward, forward_params, range, forward_);
  compile_program(*head, head_params, {1, max_logit_rows()}, head_);
  traced_forward_ = std::move(forward);
  traced_head_ = std::move(head);
}

ModelRunner::~ModelRunner() = default;

std::int64_t ModelRunner::max_logit_rows() const {
  constexpr std::int64_t kRowsToScore = 32;
  return std::min(max_tokens_, std::max(context_->options.max_num_seqs, kRowsToScore));
}

std::vector<TokenRange> ModelRunner::ranges() const {
  std::vector<TokenRange> ranges;
  std::int64_t begin = 1;
  std::vector<std::int64_t> points(context_->options.compile_ranges_split_points.begin(),
                                   context_->options.compile_ranges_split_points.end());
  std::sort(points.begin(), points.end());
  for (std::int64_t point : points) {
    if (point < begin || point >= max_tokens_) continue;
    ranges.push_back({begin, point});
    begin = point + 1;
  }
  ranges.push_back({begin, max_tokens_});
  return ranges;
}

std::shared_ptr<Graph> ModelRunner::trace(const char* name, const std::function<Values(Builder&)>& model_function,
                                          std::vector<TracedParam>& params) {
  auto graph = std::make_shared<Graph>(name, Stage::traced);
  Trace trace(context_->ops, *graph);
  TraceBuilder builder(facts_, model_, *weights_, checkpoint_.is_gguf(), trace);
  trace.finish(model_function(builder));
  params = builder.params();
  for (const auto& input : graph->inputs())
    if (!input->param && input->meta.is_tensor() && !input->meta.shape.empty())
      if (const std::string symbol = input->meta.shape[0].symbol_name(); !symbol.empty())
        graph->bounds[symbol] = {1, max_tokens_};
  return graph;
}

void ModelRunner::compile_program(const Graph& traced, const std::vector<TracedParam>& params, TokenRange range,
                                  std::vector<std::unique_ptr<Program>>& into) {
  const std::shared_ptr<Graph> graph = traced.clone();
  Compiled compiled = compile(*graph, *context_, range, pass_runner_options(context_->options));
  auto program = std::make_unique<Program>();
  program->range = range;
  for (std::size_t i = 0; i < graph->inputs().size(); ++i) program->inputs[graph->inputs()[i]->name] = i;
  program->replay = std::make_unique<Replay>(compiled.plan, *context_->threads);
  for (const TracedParam& param : params)
    program->bind(param.name, param.keys.empty() ? weights_->rotary_table() : weights_->tensor(param.keys, param.role));
  records_.push_back(std::move(compiled.record));
  into.push_back(std::move(program));
}

ModelRunner::Program& ModelRunner::program_for(std::vector<std::unique_ptr<Program>>& programs, std::int64_t rows) {
  for (auto& program : programs)
    if (rows >= program->range.lo && rows <= program->range.hi) return *program;
  CHECK(false, "no program was compiled for {} rows; the largest step is {}", rows, max_tokens_);
  return *programs.front();
}

std::int64_t ModelRunner::kv_bytes_per_page() const {
  return bytes_of(facts_.kv.dtype, kv_page_elements(facts_.kv)) * facts_.config.layer_count;
}

void ModelRunner::allocate_pages(std::int64_t pages) {
  pages_.clear();
  for (std::int64_t i = 0; i < facts_.config.layer_count; ++i)
    pages_.push_back(Tensor::empty(Meta::pages(facts_.kv), pages));
  for (auto& program : forward_)
    for (std::size_t i = 0; i < pages_.size(); ++i) program->bind("kv." + std::to_string(i), pages_[i]);
}

Tensor ModelRunner::step(const StepInput& input) {
  CHECK(!pages_.empty(), "a step needs KV pages: call allocate_pages first");
  CHECK(static_cast<std::int64_t>(input.ids.size()) <= max_tokens_, "a step takes at most {} rows, but was given {}",
        max_tokens_, input.ids.size());
  return forward_.empty() ? step_eager(input) : step_compiled(input);
}

void ModelRunner::copy_logits(const Tensor& logits, std::int64_t row, std::span<float> into) const {
  const auto width = static_cast<std::int64_t>(into.size());
  CHECK(logits.meta.shape[1] == Dim(width), "a row of logits has {} elements", logits.meta.shape[1].text());
  convert_row(logits.meta.dtype, logits.data() + bytes_of(logits.meta.dtype, row * width), DType::f32,
              reinterpret_cast<std::byte*>(into.data()), width);
}

Tensor ModelRunner::step_compiled(const StepInput& input) {
  Program& forward = program_for(forward_, static_cast<std::int64_t>(input.ids.size()));
  forward.bind("ids", tensor_of(input.ids));
  forward.bind("positions", tensor_of(input.positions));
  forward.bind("slots", tensor_of(input.slots));
  forward.bind("batch", input.batch);
  forward.replay->run();
  if (input.logit_rows.empty()) return Tensor::empty(Meta::tensor(facts_.dtype, {0, vocabulary_size()}));
  Program& head = program_for(head_, static_cast<std::int64_t>(input.logit_rows.size()));
  head.bind("hidden", forward.replay->result(0));
  head.bind("rows", tensor_of(input.logit_rows));
  head.replay->run();
  return head.replay->result(0);
}

Tensor ModelRunner::step_eager(const StepInput& input) {
  std::map<std::string, Tensor> inputs{{"ids", tensor_of(input.ids)},
                                       {"positions", tensor_of(input.positions)},
                                       {"slots", tensor_of(input.slots)},
                                       {"batch", input.batch}};
  for (std::size_t i = 0; i < pages_.size(); ++i) inputs["kv." + std::to_string(i)] = pages_[i];
  const TokenRange range{1, max_tokens_};
  EagerEvaluator evaluator(*context_, range);
  EagerBuilder builder(facts_, model_, *weights_, checkpoint_.is_gguf(), evaluator, std::move(inputs));
  const Values results = model_.forward(builder);
  if (input.logit_rows.empty()) return Tensor::empty(Meta::tensor(facts_.dtype, {0, vocabulary_size()}));
  EagerBuilder head(facts_, model_, *weights_, checkpoint_.is_gguf(), evaluator,
                    {{"hidden", results[0].tensor()}, {"rows", tensor_of(input.logit_rows)}});
  return model_.head(head)[0].tensor();
}

const Plan* ModelRunner::forward_plan() const { return forward_.empty() ? nullptr : &forward_.front()->replay->plan(); }

const Plan* ModelRunner::head_plan() const { return head_.empty() ? nullptr : &head_.front()->replay->plan(); }

void ModelRunner::set_observer(std::function<void(const PlanStep&)> observer) {
  for (auto* programs : {&forward_, &head_})
    for (auto& program : *programs) {
      Replay* replay = program->replay.get();
      replay->observer = [replay, observer](std::size_t step) { observer(replay->plan().steps[step]); };
    }
}

}  // namespace weft
