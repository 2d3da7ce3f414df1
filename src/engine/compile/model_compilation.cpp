#include "engine/compile/model_compilation.h"

#include <algorithm>
#include <map>
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

struct PhaseActivations {
  Activations prompt, decode;
};

PhaseActivations activations_of(const std::string& option) {
  if (option == "exact") return {Activations::exact, Activations::exact};
  if (option == "bf16") return {Activations::bf16, Activations::bf16};
  if (option == "prompt=bf16,decode=fast") return {Activations::bf16, Activations::int8};
  if (option == "prompt=fast,decode=bf16") return {Activations::int8, Activations::bf16};
  CHECK(option == "fast", "the options table lets through the precision {}", option);
  return {Activations::int8, Activations::int8};
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

constexpr std::int64_t kBlock = 16;  // tokens of a page

// Each page of a model with recurrent layers has their states, which are as large as the keys and values of some
// hundred tokens. As in vLLM, the block has so many tokens that the state of a layer takes no more than the keys and
// values of another one, as far as --block-size may go and the context needs it. It is an odd multiple of kBlock: rows
// of keys a power of two apart would share few places of the processor's caches.
std::int64_t block_for_states(const ModelFacts& facts) {
  constexpr std::int64_t kMost = 63;           // blocks of kBlock
  std::map<int, std::int64_t> states, others;  // bytes of a page of kBlock tokens by layer
  for (const LayerPages& pages : facts.pages())
    (pages.layout.state_rows != 0 ? states : others)[pages.layer] += kv_page_bytes(pages.layout);
  std::int64_t largest = 0, least = 0;
  for (const auto& [layer, bytes] : states) largest = std::max(largest, bytes);
  for (const auto& [layer, bytes] : others) least = least == 0 ? bytes : std::min(least, bytes);
  if (largest <= least) return kBlock;
  const std::int64_t wanted = least == 0 ? kMost : (largest + least - 1) / least;
  const std::int64_t of_context = (facts.config.context_length + kBlock - 1) / kBlock;
  return std::min({kMost, wanted, of_context}) / 2 * 2 * kBlock + kBlock;
}

ModelFacts make_facts(const Options& options, const Checkpoint& checkpoint, const ModelDefinition& model,
                      DeviceType device) {
  ModelFacts facts;
  facts.config = checkpoint.config(model.facts);
  const ModelConfig& config = facts.config;
  facts.dtype = options.dtype == "auto" ? default_dtype(config, device) : dtype_named(options.dtype);
  facts.activations = activations_of(options.activation_precision).prompt;
  facts.scales_by_group = device != DeviceType::cpu;
  const DType pages = facts.is_exact() ? DType::f32 : default_pages(checkpoint, model, facts.dtype);
  facts.kv = {.dtype = options.kv_cache_dtype == "auto" ? pages : dtype_named(options.kv_cache_dtype),
              .block = options.block_size > 0 ? options.block_size : kBlock,
              .heads = config.kv_head_count,
              .head_dim = config.head_dim,
              .keys_are_values = config.latents.has_value() && device == DeviceType::cpu};
  USER_CHECK(
      device == DeviceType::cpu || !kv_has_key_rows(facts.kv),
      "[--kv-cache-dtype] {} is for the CPU, but the device is a GPU, which has no kernels for it; f32, f16 and bf16 "
      "are for both",
      dtype_text(facts.kv.dtype));
  USER_CHECK(device == DeviceType::cpu || options.activation_precision.find("bf16") == std::string::npos,
             "[--activation-precision] bf16 is for the CPU, but the device is a GPU, which has no kernels for it; fast "
             "and exact are for both");
  if (options.max_model_len > 0) {
    USER_CHECK(options.max_model_len <= config.context_length,
               "[--max-model-len] must be at most the model's context of {}, but is {}", config.context_length,
               options.max_model_len);
    facts.config.context_length = options.max_model_len;
  }
  if (options.block_size == 0) facts.kv.block = block_for_states(facts);
  return facts;
}

}  // namespace

ModelCompilation::ModelCompilation(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models)
    : context_(std::move(context)), checkpoint_(std::move(checkpoint)), definition_(models.find(checkpoint_)) {
  phases_.reserve(2);  // what evaluates guards refers to the facts of a phase
  phases_.push_back({.facts = make_facts(context_->options, checkpoint_, definition_, context_->device.id.type)});
  context_->first_time_work->set_loading();
  check_checkpoint();
  open_adapters();
  weights_ =
      std::make_unique<Weights>(*context_, checkpoint_, facts(), definition_.tensor_names(facts().config), adapters_);
  max_tokens_ = most_tokens();
  trace_phases();
  check_adapters();
  const auto note = [&](const std::vector<std::string>& more) {
    notes_.insert(notes_.end(), more.begin(), more.end());
  };
  note(weights_->costs_of_options(phases_[0].forward.params));
  note(weights_->expansions(phases_[0].forward.params));
  note(weights_->unmerged());
}

// A step has whole texts where tokens attend to later ones.
std::int64_t ModelCompilation::most_tokens() {
  const std::int64_t context = facts().config.context_length, asked = context_->options.max_num_batched_tokens;
  if (facts().config.is_causal || asked >= context) return std::min(asked, context);
  notes_.push_back(
      fmt::format("[--max-num-batched-tokens] {} is less than the context of {} tokens, which a step must hold, since "
                  "tokens attend to later ones: a step has up to {}",
                  asked, context, context));
  return context;
}

// Phases have graphs of their own if a weight shows the difference.
void ModelCompilation::trace_phases() {
  trace_phase(phases_[0], {"forward", "head"});
  const PhaseActivations wanted = activations_of(context_->options.activation_precision);
  if (wanted.prompt != Activations::bf16 && wanted.decode != Activations::bf16) return;
  const auto has_blocks_in = [](const ModelGraph& graph) {
    const auto& inputs = graph.traced->inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const auto& input) { return input->meta.is_tensor() && is_block(input->meta.dtype); });
  };
  const bool has_blocks = has_blocks_in(phases_[0].forward) || has_blocks_in(phases_[0].head);
  if (!has_blocks)
    notes_.push_back(fmt::format("[--activation-precision] {} changes nothing: {} stores no weight in blocks",
                                 context_->options.activation_precision, checkpoint_.path()));
  if (!has_blocks || wanted.prompt == wanted.decode) return;
  PhaseGraphs& decode = phases_.emplace_back(PhaseGraphs{.facts = facts()});
  decode.facts.activations = wanted.decode;
  trace_phase(decode, {"decode_forward", "decode_head"});
}

void ModelCompilation::trace_phase(PhaseGraphs& phase, PhaseNames names) {
  phase.forward = trace(phase.facts, names.forward, definition_.forward);
  phase.head = trace(phase.facts, names.head, definition_.head);
  phase.forward.ranges = token_ranges(*phase.forward.traced, *context_, max_tokens_).ranges;
  phase.head.ranges = {{1, max_logit_rows()}};
}

std::vector<const ModelGraph*> ModelCompilation::graphs() const {
  std::vector<const ModelGraph*> graphs;
  for (const PhaseGraphs& phase : phases_) graphs.insert(graphs.end(), {&phase.forward, &phase.head});
  return graphs;
}

ModelCompilation::~ModelCompilation() = default;

void ModelCompilation::check_checkpoint() {
  const ModelConfig& config = facts().config;
  if (definition_.check) definition_.check(config);
  definition_.check_weights(checkpoint_, config);
  const UnreadTensors unread = unread_tensors(checkpoint_, definition_, config);
  notes_ = checkpoint_.notes();
  notes_.insert(notes_.end(), config.warnings.begin(), config.warnings.end());
  notes_.insert(notes_.end(), unread.said.begin(), unread.said.end());
  const std::string warning =
      check_unread_tensors(unread.names, checkpoint_.path(), context_->options.ignore_unread_tensors);
  if (!warning.empty()) notes_.push_back(warning);
  log_unknown_keys(context_->log, checkpoint_.path(), config.unknown_keys);
  for (const std::string& sentence : unread.harmless) context_->log.say("config", Log::Detail::more, sentence);
}

void ModelCompilation::open_adapters() {
  adapters_ =
      std::make_shared<const LoraStacks>(context_->options, definition_, facts().config, context_->device.id.type);
  phases_[0].facts.adapter_choices = adapters_->choices();
  notes_.insert(notes_.end(), adapters_->notes().begin(), adapters_->notes().end());
  for (const LoraAdapter& adapter : adapters_->adapters())
    log_unknown_keys(context_->log, adapter.path, adapter.unknown_keys);
}

std::vector<std::vector<std::string>> ModelCompilation::adapted_products() const {
  std::set<std::vector<std::string>> products;
  for (const ModelGraph* graph : graphs())
    for (const TracedParam& param : graph->params)
      if (param.role == WeightRole::lora_a) products.insert(param.keys);
  return {products.begin(), products.end()};
}

void ModelCompilation::check_adapters() const {
  std::set<std::string> read;
  for (const std::vector<std::string>& keys : adapted_products()) read.insert(keys.begin(), keys.end());
  adapters_->check_all_read(read);
}

ModelGraph ModelCompilation::trace(const ModelFacts& facts, const char* name,
                                   const std::function<Values(Builder&)>& function) const {
  const TraceInputs traced{context_->ops, facts, definition_, *weights_, max_tokens_};
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
  for (PhaseGraphs& phase : phases_)
    if (tune_sizes(*phase.forward.traced, *context_, phase.forward.ranges)) laps.lap("tune");
  for (PhaseGraphs& phase : phases_) {
    const bool is_first = &phase == &phases_.front();
    const bool was_found = compile(phase.forward, is_first ? &forward_key_ : nullptr);
    if (is_first) forward_was_found_ = was_found;
    compile(phase.head);
  }
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
  const ModelConfig& config = facts().config;
  const bool rotates = std::all_of(patterns.begin(), patterns.end(), [](const Pattern* pattern) {
    const auto& nodes = pattern->before.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.name == "rotary_embedding"; });
  });
  const auto count = [&](const std::map<std::string, int>& fusions) {
    const auto found = fusions.find(fusion);
    return found == fusions.end() ? 0 : found->second;
  };
  const bool are_codes = !has_node("grouped_linear");
  const int of_experts = are_codes ? count(definition_.fusions_of_experts) : 0;
  int matches = 0;
  for (int layer = 0; layer < config.layer_count; ++layer) {
    if (rotates && (!config.attends(layer) || config.rope_of(layer) == nullptr)) continue;
    const bool recurs = config.recurs(layer);
    if (config.routes(layer)) {
      matches += of_experts;
      matches += count(recurs ? definition_.fusions_per_recurrent_mixture : definition_.fusions_per_mixture);
    } else {
      matches += count(recurs ? definition_.fusions_per_recurrent_layer : definition_.fusions_per_layer);
    }
  }
  return matches;
}

bool ModelCompilation::has_node(const std::string& op) const {
  const NodeList& nodes = phases_[0].forward.traced->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node->name == op; });
}

ExpectedFusions ModelCompilation::declared_fusions() const {
  ExpectedFusions declared;
  for (const auto* fusions :
       {&definition_.fusions_per_layer, &definition_.fusions_per_recurrent_layer,
        &definition_.fusions_per_recurrent_mixture, &definition_.fusions_per_mixture, &definition_.fusions_of_experts})
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
  for (const LayerPages& layer : facts().pages()) bytes += kv_page_bytes(layer.layout);
  return bytes;
}

std::int64_t ModelCompilation::kv_bytes_of_longest_sequence() const {
  return (facts().config.context_length + facts().kv.block - 1) / facts().kv.block * kv_bytes_per_page();
}

std::int64_t ModelCompilation::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const ModelGraph* graph : graphs()) {
    std::int64_t sum = 0, most = 0;
    for (const auto& plan : std::set<std::shared_ptr<const Plan>>(graph->plans.begin(), graph->plans.end())) {
      sum += plan->arena_bytes;
      most = std::max(most, plan->arena_bytes);
    }
    bytes += context_->stream_device == nullptr ? sum : most;
  }
  return bytes;
}

// A sequence needs its KV pages, and the rotary table has a row for each token.
std::string ModelCompilation::describe_excess_of_context() const {
  const ModelConfig& config = facts().config;
  const std::int64_t per_token = kv_bytes_per_page() / facts().kv.block + bytes_of(DType::f32, config.rope.rotary_dim);
  const bool is_host = context_->stream_device == nullptr;
  const std::int64_t bytes = is_host ? std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)
                                     : context_->stream_device->facts().memory_bytes;
  if (config.context_length <= bytes / per_token) return "";
  return fmt::format(
      "[--max-model-len] a sequence of {} tokens needs {} bytes for each of them, but {} has {} bytes of memory; "
      "it must be at most {} here",
      config.context_length, per_token, is_host ? "this machine" : device_text(context_->device.id), bytes,
      bytes / per_token);
}

const std::vector<CompileRecord>& ModelCompilation::records() {
  if (records_.size() == range_count_) return records_;
  records_.clear();
  for (const ModelGraph* graph : graphs())
    for (CompileRecord& record : compile_records(*graph->traced, *context_, graph->ranges))
      records_.push_back(std::move(record));
  return records_;
}

std::vector<StoredPlans> ModelCompilation::store_plans() const {
  USER_CHECK(!phases_[0].forward.plans.empty(), "[compile] nothing is compiled into plans with these options");
  std::vector<StoredPlans> stored;
  for (const ModelGraph* graph : graphs()) {
    std::vector<const Plan*> plans;
    for (const auto& plan : graph->plans) plans.push_back(plan.get());
    stored.push_back(weft::store_plans(*graph->traced, *context_, graph->ranges, plans));
  }
  return stored;
}

void ModelCompilation::check_guards(Phase phase, std::int64_t rows, std::int64_t logit_rows) {
  PhaseGraphs& graphs = phases_[index_of(phase)];
  if (!graphs.forward.guards) return;
  const std::string tokens = tokens_symbol().symbol_name();
  graphs.forward.guards->check({{tokens, rows}});
  if (logit_rows > 0) graphs.head.guards->check({{tokens, rows}, {rows_symbol().symbol_name(), logit_rows}});
}

std::vector<GuardReport> ModelCompilation::guard_reports() const {
  std::vector<GuardReport> reports;
  for (const ModelGraph* graph : graphs())
    if (graph->guards) reports.push_back(graph->guards->report());
  return reports;
}

CacheUse ModelCompilation::cache_use() const { return weft::cache_use(*context_, forward_key_, forward_was_found_); }

}  // namespace weft
