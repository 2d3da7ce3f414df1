#include "engine/compile/model_compilation.h"

#include <algorithm>
#include <set>

#include <unistd.h>

#include "base/error.h"
#include "compiler/piece_graph.h"
#include "compiler/token_ranges.h"
#include "models/unread_tensors.h"
#include "options/effective_options.h"
#include "passes/pattern_pass.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

DType dtype_named(const std::string& text) {
  const auto dtype = dtype_from_text(text);
  CHECK(dtype.has_value(), "the options table lets through the dtype {}", text);
  return *dtype;
}

// A GGUF file names no dtype of the residual stream.
DType default_dtype(const ModelConfig& config, DeviceType device) {
  return config.format == CheckpointFormat::gguf && device != DeviceType::cpu ? DType::bf16 : config.dtype;
}

// The dtype of KV pages is the model's dtype. A GGUF file shows it by how the first matrix of its layers is stored: f16
// is enough for block formats, which have fewer than 16 bits for a number.
DType default_pages(const Checkpoint& checkpoint, const ModelDefinition& model, DType dtype) {
  if (!checkpoint.is_gguf()) return dtype;
  for (const ModelWeight& weight : model.weights) {
    const TensorEntry* entry = weight.is_per_layer() ? checkpoint.find(weight.key(CheckpointFormat::gguf, 0)) : nullptr;
    if (entry == nullptr || entry->tensor.meta.shape.size() < 2) continue;
    const DType stored = entry->tensor.meta.dtype;
    return is_block(stored) ? DType::f16 : stored == DType::f32 ? dtype : stored;
  }
  return DType::f16;
}

ModelFacts make_facts(const Options& options, const Checkpoint& checkpoint, const ModelDefinition& model,
                      DeviceType device) {
  ModelFacts facts;
  facts.config = checkpoint.config(model.facts);
  const ModelConfig& config = facts.config;
  facts.dtype = options.dtype == "auto" ? default_dtype(config, device) : dtype_named(options.dtype);
  facts.fast = options.activation_precision == "fast";
  facts.scales_by_group = device != DeviceType::cpu;
  const DType pages = facts.fast ? default_pages(checkpoint, model, facts.dtype) : DType::f32;
  facts.kv = {.dtype = options.kv_cache_dtype == "auto" ? pages : dtype_named(options.kv_cache_dtype),
              .block = options.block_size,
              .heads = config.kv_head_count,
              .head_dim = config.head_dim};
  USER_CHECK(
      device == DeviceType::cpu || !kv_has_key_rows(facts.kv),
      "[--kv-cache-dtype] {} is for the CPU, but the device is a GPU, which has no kernels for it; f32, f16 and bf16 "
      "are for both",
      dtype_text(facts.kv.dtype));
  if (options.max_model_len > 0) {
    USER_CHECK(options.max_model_len <= config.context_length,
               "[--max-model-len] must be at most the model's context of {}, but is {}", config.context_length,
               options.max_model_len);
    facts.config.context_length = options.max_model_len;
  }
  return facts;
}

// Checks that the memory holds one sequence as long as the context: its KV pages, and the rotary table, which has a row
// for each token.
void check_context_fits(const ModelFacts& facts, const Context& context) {
  std::int64_t per_token = bytes_of(DType::f32, facts.config.rope.rotary_dim);
  for (int layer = 0; layer < facts.config.layer_count && facts.config.has_own_kv(layer); ++layer) {
    const KvLayout layout = facts.kv_of(layer);
    per_token += bytes_of(layout.dtype, 2 * layout.heads * layout.head_dim);
  }
  const bool is_host = context.stream_device == nullptr;
  const std::int64_t bytes = is_host ? std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)
                                     : context.stream_device->facts().memory_bytes;
  USER_CHECK(
      facts.config.context_length <= bytes / per_token,
      "[--max-model-len] a sequence of {} tokens needs {} bytes for each of them, but {} has {} bytes of memory; "
      "it must be at most {} here",
      facts.config.context_length, per_token, is_host ? "this machine" : device_text(context.device.id), bytes,
      bytes / per_token);
}

}  // namespace

ModelCompilation::ModelCompilation(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models)
    : context_(std::move(context)),
      checkpoint_(std::move(checkpoint)),
      definition_(models.find(checkpoint_.architecture(), checkpoint_.path())),
      facts_(make_facts(context_->options, checkpoint_, definition_, context_->device.id.type)) {
  context_->first_time_work->set_loading();
  check_checkpoint();
  check_context_fits(facts_, *context_);
  weights_ = std::make_unique<Weights>(*context_, checkpoint_, facts_);
  max_tokens_ = std::min(context_->options.max_num_batched_tokens, facts_.config.context_length);
  forward_ = trace("forward", definition_.forward);
  const auto note = [&](const std::vector<std::string>& more) {
    notes_.insert(notes_.end(), more.begin(), more.end());
  };
  note(weights_->costs_of_options(forward_.params));
  note(weights_->expansions(forward_.params));
  note(weights_->unmerged());
  head_ = trace("head", definition_.head);
  forward_.ranges = token_ranges(*forward_.traced, *context_, max_tokens_).ranges;
  head_.ranges = {{1, max_logit_rows()}};
}

ModelCompilation::~ModelCompilation() = default;

void ModelCompilation::check_checkpoint() {
  const ModelConfig& config = facts_.config;
  if (definition_.check) definition_.check(config);
  definition_.check_weights(checkpoint_, config);
  const UnreadTensors unread = unread_tensors(checkpoint_, definition_, config);
  notes_ = checkpoint_.notes();
  notes_.insert(notes_.end(), config.warnings.begin(), config.warnings.end());
  const std::string warning =
      check_unread_tensors(unread.names, checkpoint_.path(), context_->options.ignore_unread_tensors);
  if (!warning.empty()) notes_.push_back(warning);
  log_unknown_keys(context_->log, checkpoint_.path(), config.unknown_keys);
  for (const std::string& sentence : unread.harmless) context_->log.say("config", Log::Detail::more, sentence);
}

ModelGraph ModelCompilation::trace(const char* name, const std::function<Values(Builder&)>& function) const {
  const TraceInputs traced{context_->ops, facts_, definition_, *weights_, max_tokens_};
  TracedGraph graph = trace_graph(traced, name, function);
  ModelGraph made;
  if (context_->options.evaluate_guards) made.guards = evaluate_guards(traced, graph, function);
  made.traced = std::move(graph.graph);
  made.params = std::move(graph.params);
  return made;
}

void ModelCompilation::compile(Stopwatch* watch) {
  Stopwatch unread;
  Stopwatch& laps = watch == nullptr ? unread : *watch;
  if (tune_sizes(*forward_.traced, *context_, forward_.ranges)) laps.lap("tune");
  forward_was_found_ = compile(forward_, &forward_key_);
  compile(head_);
  laps.lap("compile");
  const Options& options = context_->options;
  check_piece_names("--eager-piece", options.eager_piece, records_);
  if (!options.expect_fusions.empty())
    check_expected_fusions(parse_expected_fusions(options.expect_fusions, *context_, declared_fusions()), *context_,
                           records_);
}

// Returns whether the Plans were found in the compile cache.
bool ModelCompilation::compile(ModelGraph& graph, std::optional<CacheKey>* key) {
  CompiledRanges compiled =
      find_or_compile(*graph.traced, *context_, graph.ranges, pass_runner_options(context_->options), key);
  graph.ranges = std::move(compiled.ranges);
  graph.plans = std::move(compiled.plans);
  graph.first_record = range_count_;
  range_count_ += graph.ranges.size();
  const bool was_found = compiled.records.empty();
  for (CompileRecord& record : compiled.records) records_.push_back(std::move(record));
  return was_found;
}

// The matches of the patterns that the definition declares for all layers. A layer without rotary positions has no node
// that rotates.
int ModelCompilation::declared_matches(const std::string& fusion, std::span<const Pattern* const> patterns) const {
  const ModelConfig& config = facts_.config;
  const bool rotates = std::all_of(patterns.begin(), patterns.end(), [](const Pattern* pattern) {
    const auto& nodes = pattern->before.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.name == "rotary_embedding"; });
  });
  const auto count = [&](const std::map<std::string, int>& fusions) {
    const auto found = fusions.find(fusion);
    return found == fusions.end() ? 0 : found->second;
  };
  const bool are_codes = !has_node("grouped_linear");
  const int of_mixture =
      count(definition_.fusions_per_mixture) + (are_codes ? count(definition_.fusions_of_experts) : 0);
  int matches = 0;
  for (int layer = 0; layer < config.layer_count; ++layer)
    if (!rotates || config.rope_of(layer) != nullptr)
      matches += config.routes(layer) ? of_mixture : count(definition_.fusions_per_layer);
  return matches;
}

bool ModelCompilation::has_node(const std::string& op) const {
  const NodeList& nodes = forward_.traced->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node->name == op; });
}

ExpectedFusions ModelCompilation::declared_fusions() const {
  ExpectedFusions declared;
  for (const auto* fusions :
       {&definition_.fusions_per_layer, &definition_.fusions_per_mixture, &definition_.fusions_of_experts})
    for (const auto& [fusion, count] : *fusions) {
      const std::vector<const Pattern*> patterns = patterns_named(context_->patterns, fusion);
      // The last node of a pattern: a model without it does not quantize its activations in this way.
      const bool ends = std::any_of(patterns.begin(), patterns.end(), [&](const Pattern* pattern) {
        return has_node(pattern->before.nodes.back().name);
      });
      const int matches = ends ? declared_matches(fusion, patterns) : 0;
      if (matches > 0) declared[fusion] = matches;
    }
  return declared;
}

std::int64_t ModelCompilation::max_logit_rows() const {
  constexpr std::int64_t kRowsToScore = 32;
  return std::min(max_tokens_, std::max(context_->options.max_num_seqs, kRowsToScore));
}

std::int64_t ModelCompilation::kv_bytes_per_page() const {
  std::int64_t bytes = 0;
  for (int layer = 0; layer < facts_.config.layer_count && facts_.config.has_own_kv(layer); ++layer)
    bytes += bytes_of(facts_.kv.dtype, kv_page_elements(facts_.kv_of(layer)));
  return bytes;
}

std::int64_t ModelCompilation::kv_bytes_of_longest_sequence() const {
  return (facts_.config.context_length + facts_.kv.block - 1) / facts_.kv.block * kv_bytes_per_page();
}

std::int64_t ModelCompilation::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const ModelGraph* graph : {&forward_, &head_}) {
    std::int64_t sum = 0, most = 0;
    for (const auto& plan : std::set<std::shared_ptr<const Plan>>(graph->plans.begin(), graph->plans.end())) {
      sum += plan->arena_bytes;
      most = std::max(most, plan->arena_bytes);
    }
    bytes += context_->stream_device == nullptr ? sum : most;
  }
  return bytes;
}

const std::vector<CompileRecord>& ModelCompilation::records() {
  if (records_.size() == range_count_) return records_;
  records_.clear();
  for (const ModelGraph* graph : {&forward_, &head_})
    for (CompileRecord& record : compile_records(*graph->traced, *context_, graph->ranges))
      records_.push_back(std::move(record));
  return records_;
}

std::vector<StoredPlans> ModelCompilation::store_plans() const {
  USER_CHECK(!forward_.plans.empty(), "[compile] nothing is compiled into plans with these options");
  std::vector<StoredPlans> stored;
  for (const ModelGraph* graph : {&forward_, &head_}) {
    std::vector<const Plan*> plans;
    for (const auto& plan : graph->plans) plans.push_back(plan.get());
    stored.push_back(weft::store_plans(*graph->traced, *context_, graph->ranges, plans));
  }
  return stored;
}

void ModelCompilation::check_guards(std::int64_t rows, std::int64_t logit_rows) {
  if (!forward_.guards) return;
  const std::string tokens = tokens_symbol().symbol_name();
  forward_.guards->check({{tokens, rows}});
  if (logit_rows > 0) head_.guards->check({{tokens, rows}, {rows_symbol().symbol_name(), logit_rows}});
}

std::vector<GuardReport> ModelCompilation::guard_reports() const {
  if (!forward_.guards) return {};
  return {forward_.guards->report(), head_.guards->report()};
}

CacheUse ModelCompilation::cache_use() const { return weft::cache_use(*context_, forward_key_, forward_was_found_); }

}  // namespace weft
