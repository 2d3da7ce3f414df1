#include "compiler/run/graph_program.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/check/verify_pieces.h"
#include "compiler/replay_settings.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "ir/donation.h"
#include "ir/print.h"
#include "options/effective_options.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"
#include "tensor/footprint.h"

namespace weft {
namespace {

// A compiled file has only the Plans of its model, so other graphs are compiled.
CompiledRanges compiled_for(const Graph& graph, const Context& context, TokenRange range) {
  const PassRunnerOptions passes = pass_runner_options(context.options);
  if (graph.stage == Stage::traced && context.stored_plans == nullptr)
    return find_or_compile(graph, context, {range}, passes);
  return compile_ranges(graph, context, {range}, passes);
}

}  // namespace

TokenRange token_range(const Graph& graph, const Options& options) {
  const auto bound = graph.bounds.find(graph.governing_symbol());
  if (bound == graph.bounds.end()) return {1, options.max_num_batched_tokens};
  return {std::max<std::int64_t>(bound->second.lo, 1), std::max<std::int64_t>(bound->second.hi, 1)};
}

void complete_bounds(Graph& graph, const Options& options) {
  for (const auto& input : graph.inputs())
    for (const Dim& dim : input->meta.shape)
      if (const std::string symbol = dim.symbol_name(); !symbol.empty() && !graph.bounds.contains(symbol))
        graph.bounds[symbol] = {1, options.max_num_batched_tokens};
}

void check_input(const GraphValue& input, const Tensor& tensor, Bindings& symbols, const Bounds& bounds) {
  const Meta &wanted = input.meta, &came = tensor.meta;
  bool fits = wanted.kind == came.kind && wanted.packed.empty() &&
              (wanted.kind != MetaKind::tensor || (wanted.dtype == came.dtype && wanted.rank() == came.rank())) &&
              (wanted.kind != MetaKind::kv || wanted.kv == came.kv) && wanted.is_contiguous();
  for (std::size_t i = 0; fits && wanted.is_tensor() && i < wanted.rank(); ++i) {
    const std::int64_t extent = came.shape[i].number();
    if (wanted.shape[i].is_number()) fits = wanted.shape[i].number() == extent;
    const std::string symbol = wanted.shape[i].symbol_name();
    if (symbol.empty()) continue;
    const auto [known, is_new] = symbols.emplace(symbol, extent);
    USER_CHECK(is_new || known->second == extent, "[graph run] inputs disagree on {}: {} and {} ({})", symbol,
               known->second, extent, input.name);
    const auto bound = bounds.find(symbol);
    USER_CHECK(bound == bounds.end() || extent == 0 || (extent >= bound->second.lo && extent <= bound->second.hi),
               "[graph run] {} must be in [{}, {}], but is {}", symbol, bound->second.lo, bound->second.hi, extent);
  }
  USER_CHECK(fits, "[graph run] input {} must be {}, but is {}", input.name, wanted.text(), came.text());
}

void check_sizes(const Graph& graph, std::span<const Tensor> tensors, const Bindings& symbols) {
  const std::map<std::string, Dim> known(symbols.begin(), symbols.end());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const GraphValue& input = *graph.inputs()[i];
    if (!tensors[i].defined() || !input.meta.is_tensor()) continue;
    for (std::size_t d = 0; d < input.meta.rank(); ++d) {
      const Dim wanted = input.meta.shape[d].substitute(known);
      USER_CHECK(wanted == tensors[i].meta.shape[d], "[graph run] input {} must be {} with {} = {}, but is {}",
                 input.name, input.meta.text(), input.meta.shape[d].text(), wanted.text(), tensors[i].meta.text());
    }
  }
}

GraphProgram::GraphProgram(const Context& context, std::shared_ptr<Graph> graph)
    : context_(context), graph_(std::move(graph)), is_compiled_(eager_option(context.options).empty()) {
  if (!is_compiled_) check_host_reads(context_, eager_option(context_.options));
  complete_bounds(*graph_, context_.options);
  range_ = token_range(*graph_, context_.options);
  if (graph_->stage == Stage::traced) {
    assign_names(*graph_);
    check_donations(*graph_);
  }
  if (!is_compiled_) return;
  compiled_ = compiled_for(*graph_, context_, range_);
  if (!compiled_.plans.empty())
    replay_ =
        std::make_unique<Replay>(compiled_.plans[0], *context_.threads, &context_.groups, replay_settings(context_));
  if (replay_ == nullptr) check_host_reads(context_, "--compile-to");
  if (replay_ != nullptr && context_.options.check_replay && context_.stream_device == nullptr) {
    verification_ = std::make_unique<PieceVerification>(context_);
    verification_->fail_where_different();
    verification_->watch(*replay_, *record());
  }
  mode_ = replay_mode(context_.options);
  if (replay_ != nullptr && captures_before_ready(context_.options)) replay_->capture(mode_);
}

GraphProgram::~GraphProgram() = default;

const CompileRecord* GraphProgram::record() {
  if (!is_compiled_) return nullptr;
  if (compiled_.records.empty()) compiled_.records = compile_records(*graph_, context_, compiled_.ranges);
  return &compiled_.records[0];
}

// Copies the input to the memory that it had in the last run, if it fits there.
const Tensor& GraphProgram::on_device(std::size_t index, const Tensor& input) {
  cuda::StreamDevice& device = *context_.stream_device;
  const bool is_batch = input.meta.kind == MetaKind::batch, is_kv = input.meta.kind == MetaKind::kv;
  std::int64_t bytes = is_batch ? bytes_of_batch(batch_of(input).sequences, batch_of(input).max_blocks)
                                : std::max<std::int64_t>(stored_bytes(input), 1);
  if (!is_batch && !is_kv) bytes = whole_cache_lines(bytes);
  places_.resize(graph_->inputs().size());
  Tensor& place = places_[index];
  // The size of the storage says how many KV pages there are, so it must match exactly.
  const std::int64_t room = place.defined() ? place.storage->bytes() : 0;
  if (is_kv ? room != bytes : room < bytes)
    place.storage = is_batch ? device.allocate_host(bytes) : device.allocate(bytes);
  place.meta = input.meta;
  if (is_batch) {
    copy_batch(batch_of(input), place.data());
  } else {
    device.copy(place.data(), input.data(), static_cast<std::size_t>(stored_bytes(input)));
  }
  return place;
}

std::vector<Tensor> GraphProgram::replay(std::span<const Tensor> inputs) {
  cuda::StreamDevice* const device = context_.stream_device.get();
  std::vector<Tensor> results;
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      replay_->bind(i, device == nullptr ? inputs[i] : on_device(i, inputs[i]));
    replay_->run(mode_);
    for (std::size_t i = 0; i < compiled_.plans[0]->results.size(); ++i)
      results.push_back(device == nullptr ? replay_->result(i) : device->download(replay_->result(i)));
    if (device != nullptr) device->synchronize();
  } catch (...) {
    if (device != nullptr) device->settle();  // queued work still reads the inputs
    throw;
  }
  return results;
}

std::vector<Tensor> GraphProgram::run(std::span<const Tensor> inputs) {
  CHECK(inputs.size() == graph_->inputs().size(), "graph {} has {} inputs, but is given {}", graph_->name,
        graph_->inputs().size(), inputs.size());
  if (replay_ != nullptr) return replay(inputs);
  std::vector<Tensor> results;
  EagerEvaluator evaluator(context_, range_);
  Values values;
  for (const Tensor& input : inputs) values.push_back(evaluator.value(input));
  const Graph& graph = is_compiled_ ? *compiled_.records[0].split : *graph_;
  for (const Value& result : run_graph(graph, evaluator, values)) results.push_back(result.tensor());
  return results;
}

}  // namespace weft
