#include "apps/cli/graph_commands.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "compiler/eager.h"
#include "compiler/interpret.h"
#include "compiler/splitting_ops.h"
#include "ir/parse.h"
#include "runtime/replay.h"
#include "tensor/batch.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::size_t kMaxGraphBytes = 64u << 20;

// The rows that kernels are chosen for: the bounds of the governing symbol, or one step of the engine.
TokenRange token_range(const Graph& graph, const Options& options) {
  const auto bound = graph.bounds.find(graph.governing_symbol());
  if (bound == graph.bounds.end()) return {1, options.max_num_batched_tokens};
  return {std::max<std::int64_t>(bound->second.lo, 1), std::max<std::int64_t>(bound->second.hi, 1)};
}

PassContext pass_context(const Graph& graph, const Context& context) {
  return {.ops = context.ops,
          .kernels = context.kernels,
          .priorities = context.priorities,
          .range = token_range(graph, context.options),
          .batch_invariant = context.options.batch_invariant,
          .splitting_ops = resolve_splitting_ops(context.options)};
}

// Graphs from stage lowered on need the bounds of every symbol.
void complete_bounds(Graph& graph, const Options& options) {
  for (const auto& input : graph.inputs())
    for (const Dim& dim : input->meta.shape)
      if (const std::string symbol = dim.symbol_name(); !symbol.empty() && !graph.bounds.contains(symbol))
        graph.bounds[symbol] = {1, options.max_num_batched_tokens};
}

// One past the highest page that the batch names.
std::int64_t pages_of(const Tensor& batch) {
  const Batch& step = batch_of(batch);
  std::int64_t pages = 1;
  for (std::int64_t i = 0; i < std::int64_t{step.sequences} * step.max_blocks; ++i)
    pages = std::max(pages, std::int64_t{step.block_table[i]} + 1);
  return pages;
}

// Dims that are symbols take the tensor's extent, the same everywhere.
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

// The tensors of `a+b` one after another, as the param's type says.
Tensor param_from(const Checkpoint& checkpoint, const GraphValue& param, const Context& context) {
  Meta plain = param.meta;
  plain.packed.clear();
  USER_CHECK(plain.rank() >= 1 && plain.bytes().is_number(), "[graph run] param {} must have a fixed shape, but is {}",
             param.name, param.meta.text());
  // Vectors have the dtype of the residual stream, whatever the file has.
  if (const TensorEntry* vector = plain.rank() == 1 ? checkpoint.find(param.key) : nullptr;
      vector != nullptr && vector->tensor.meta.shape == plain.shape && is_floating(vector->tensor.meta.dtype) &&
      is_floating(plain.dtype)) {
    Tensor tensor = Tensor::empty(plain);
    convert_row(vector->tensor.meta.dtype, vector->tensor.data(), plain.dtype, tensor.data(), plain.shape[0].number());
    return tensor;
  }
  std::vector<const std::byte*> rows;
  Shape row_shape = plain.shape;
  row_shape[0] = 1;
  const std::int64_t row_bytes = Meta::tensor(plain.dtype, row_shape).bytes().number();
  for (const std::string& key : split(param.key, '+')) {
    const Tensor& part = checkpoint.tensor(key);
    Shape part_row = part.meta.shape;
    if (!part_row.empty()) part_row[0] = 1;
    USER_CHECK(part.meta.dtype == plain.dtype && part_row == row_shape, "[graph run] {} must be rows of {}, but is {}",
               key, param.meta.text(), part.meta.text());
    for (std::int64_t row = 0; row < part.meta.shape[0].number(); ++row) rows.push_back(part.data() + row * row_bytes);
  }
  USER_CHECK(plain.shape[0] == Dim(static_cast<std::int64_t>(rows.size())), "[graph run] {} has {} rows, but {} is {}",
             param.key, rows.size(), param.name, param.meta.text());
  Tensor tensor{.meta = param.meta};
  if (param.meta.packed.empty()) {
    tensor.storage = Storage::allocate(plain.bytes().number());
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(tensor.data() + static_cast<std::int64_t>(i) * row_bytes, rows[i],
                  static_cast<std::size_t>(row_bytes));
    return tensor;
  }
  const Packing* packing = context.kernels.find_packing(param.meta.packed);
  USER_CHECK(packing != nullptr, "[graph run] there is no packing {}", param.meta.packed);
  const Verdict verdict = packing->accepts(plain, context.device);
  USER_CHECK(bool(verdict), "[graph run] {} cannot be packed as {}: {}", param.name, param.meta.packed,
             verdict.reason());
  tensor.storage = Storage::allocate(packing->bytes(plain));
  for (std::int64_t unit = 0; unit < packing->units(plain); ++unit)
    packing->pack(
        plain, [&](std::int64_t row) { return rows[static_cast<std::size_t>(row)]; }, tensor.data(), unit);
  return tensor;
}

std::vector<Tensor> bind_inputs(const Graph& graph, const TensorFile& file, const Context& context,
                                const std::optional<Checkpoint>& checkpoint) {
  std::vector<Tensor> tensors;
  Bindings symbols;
  std::int64_t pages = 1;
  const Tensor* batch = nullptr;
  tensors.reserve(graph.inputs().size());
  for (const auto& input : graph.inputs()) {
    std::optional<Tensor> tensor = file.find(input->name);
    if (!tensor && checkpoint && input->param && !input->key.empty()) {
      tensors.push_back(param_from(*checkpoint, *input, context));
      continue;
    }
    USER_CHECK(tensor || input->meta.kind == MetaKind::kv, "[graph run] input {} is missing: the file holds {}",
               input->name, fmt::join(file.names(), ", "));
    if (tensor) check_input(*input, *tensor, symbols, graph.bounds);
    tensors.push_back(tensor ? std::move(*tensor) : Tensor());
    if (input->meta.kind == MetaKind::batch) {
      batch = &tensors.back();
      pages = std::max(pages, pages_of(*batch));
    }
  }
  const auto rows = symbols.find(graph.governing_symbol());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (graph.inputs()[i]->meta.kind != MetaKind::kv) continue;
    if (!tensors[i].defined()) tensors[i] = Tensor::empty(graph.inputs()[i]->meta, pages);
    if (batch != nullptr && rows != symbols.end()) check_batch(*batch, tensors[i], rows->second);
  }
  return tensors;
}

std::vector<Tensor> run_eagerly(const Graph& graph, const Context& context, const std::vector<Tensor>& inputs) {
  EagerEvaluator evaluator(context, token_range(graph, context.options));
  Values values;
  for (const Tensor& input : inputs) values.push_back(evaluator.value(input));
  std::vector<Tensor> results;
  for (const Value& result : run_graph(graph, evaluator, values)) results.push_back(contiguous(result.tensor()));
  return results;
}

std::vector<Tensor> run_compiled(Graph& graph, const Context& context, const std::vector<Tensor>& inputs) {
  const std::shared_ptr<const Plan> plan = compile_graph(graph, context);
  if (plan == nullptr) return run_eagerly(graph, context, inputs);
  Replay replay(plan, *context.threads);
  for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, inputs[i]);
  replay.run();
  std::vector<Tensor> results;
  // A view keeps its storage, and there is no next run.
  for (std::size_t i = 0; i < plan->results.size(); ++i) {
    const Tensor result = replay.result(i);
    results.push_back(result.meta.is_tensor() ? Tensor::from_bytes(contiguous(result).meta, contiguous(result).data())
                                              : result);
  }
  return results;
}

}  // namespace

std::vector<Definition> read_definitions(const std::string& path, const OpTable& ops) {
  std::vector<Definition> definitions = parse_definitions(read_file(path, kMaxGraphBytes), ops, path);
  USER_CHECK(!definitions.empty(), "[graph] {} holds no graph and no pattern", path);
  return definitions;
}

std::vector<std::shared_ptr<Graph>> read_graphs(const std::string& path, const OpTable& ops) {
  std::vector<std::shared_ptr<Graph>> graphs = parse_graphs(read_file(path, kMaxGraphBytes), ops, path);
  USER_CHECK(!graphs.empty(), "[graph] {} holds no graph", path);
  return graphs;
}

std::vector<PassRecord> run_passes_to(Graph& graph, const Context& context, Stage stage) {
  USER_CHECK(graph.stage <= stage, "[--to] graph {} is at stage {} already, beyond {}", graph.name,
             stage_text(graph.stage), stage_text(stage));
  complete_bounds(graph, context.options);
  PassContext passes = pass_context(graph, context);
  PassRunnerOptions options = pass_runner_options(context.options);
  options.stop_after = std::min(stage, options.stop_after.value_or(stage));
  return run_passes(graph, passes, passes_of(context), options);
}

std::vector<PassRecord> run_named_passes(Graph& graph, const Context& context, const std::vector<std::string>& names) {
  complete_bounds(graph, context.options);
  PassContext passes = pass_context(graph, context);
  const PassRunnerOptions options = pass_runner_options(context.options);
  const std::vector<PassRow> rows = passes_of(context);
  std::vector<std::string> known;
  for (const PassRow& row : rows) known.push_back(row.name);
  std::vector<PassRecord> records;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    USER_CHECK(found != known.end(), "[--passes] {} is not a pass{}", quote(name), suggestion(name, known));
    const PassRow& row = rows[static_cast<std::size_t>(found - known.begin())];
    USER_CHECK(graph.stage == row.needs, "[--passes] {} needs a graph of stage {}, but {} is {}", name,
               stage_text(row.needs), graph.name, stage_text(graph.stage));
    for (PassRecord& record : run_passes(graph, passes, {&row, 1}, options)) records.push_back(std::move(record));
  }
  return records;
}

std::shared_ptr<const Plan> compile_graph(Graph& graph, const Context& context) {
  complete_bounds(graph, context.options);
  return compile(graph, context, token_range(graph, context.options), pass_runner_options(context.options)).plan;
}

std::vector<std::string> result_names(const Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < graph.results().size(); ++i) {
    const std::string& name = graph.results()[i]->name;
    names.push_back(!name.empty() && taken.insert(name).second ? name : std::to_string(i));
  }
  return names;
}

std::vector<Tensor> run_graph_text(Graph& graph, const Context& context, const TensorFile& inputs,
                                   const std::optional<Checkpoint>& checkpoint) {
  complete_bounds(graph, context.options);
  const std::vector<Tensor> tensors = bind_inputs(graph, inputs, context, checkpoint);
  return context.options.enforce_eager ? run_eagerly(graph, context, tensors) : run_compiled(graph, context, tensors);
}

}  // namespace weft
