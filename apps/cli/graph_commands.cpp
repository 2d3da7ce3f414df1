#include "apps/cli/graph_commands.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "compiler/run/graph_program.h"
#include "ir/parse.h"
#include "tensor/batch.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::size_t kMaxGraphBytes = 64u << 20;

// One past the highest page that the batch names.
std::int64_t pages_of(const Tensor& batch) {
  const Batch& step = batch_of(batch);
  std::int64_t pages = 1;
  for (std::int64_t i = 0; i < std::int64_t{step.sequences} * step.max_blocks; ++i)
    pages = std::max(pages, std::int64_t{step.block_table[i]} + 1);
  return pages;
}

// The tensors of `a+b`, whose rows together are the param: views of the file.
std::vector<Tensor> parts_of(const Checkpoint& checkpoint, const GraphValue& param, const Meta& plain) {
  const auto row_of = [](const Meta& meta) {
    Shape shape = meta.shape;
    if (!shape.empty()) shape[0] = 1;
    return shape;
  };
  std::vector<Tensor> parts;
  Dim rows = 0;
  for (const std::string& key : split_text(param.key, '+')) {
    parts.push_back(checkpoint.tensor(key));
    const Meta& part = parts.back().meta;
    USER_CHECK(part.dtype == plain.dtype && row_of(part) == row_of(plain),
               "[graph run] {} must be rows of {}, but is {}", key, param.meta.text(), part.text());
    rows = rows + part.shape[0];
  }
  USER_CHECK(plain.shape[0] == rows, "[graph run] {} has {} rows, but {} is {}", param.key, rows.text(), param.name,
             param.meta.text());
  return parts;
}

Tensor param_from(const Checkpoint& checkpoint, const GraphValue& param, const Context& context) {
  Meta plain = param.meta;
  plain.packed.clear();
  USER_CHECK(plain.rank() >= 1 && plain.is_contiguous() && plain.bytes().is_number(),
             "[graph run] param {} must be contiguous and of a fixed shape, but is {}", param.name, param.meta.text());
  // Vectors have the dtype of the residual stream, whatever the file has.
  if (const TensorEntry* vector = plain.rank() == 1 ? checkpoint.find(param.key) : nullptr;
      vector != nullptr && vector->tensor.meta.shape == plain.shape && is_floating(vector->tensor.meta.dtype) &&
      is_floating(plain.dtype)) {
    Tensor tensor = Tensor::empty(plain);
    convert_row(vector->tensor.meta.dtype, vector->tensor.data(), plain.dtype, tensor.data(), plain.shape[0].number());
    return tensor;
  }
  const std::vector<Tensor> parts = parts_of(checkpoint, param, plain);
  if (param.meta.packed.empty()) {
    const Tensor merged = Tensor::empty(plain);
    std::byte* at = merged.data();
    for (const Tensor& part : parts) {
      const std::int64_t bytes = part.meta.bytes().number();
      std::memcpy(at, part.data(), static_cast<std::size_t>(bytes));
      at += bytes;
    }
    return merged;
  }
  const Packing* packing = context.kernels.find_packing(param.meta.packed);
  USER_CHECK(packing != nullptr, "[graph run] there is no packing {}", param.meta.packed);
  const Verdict verdict = packing->accepts(plain, context.device);
  USER_CHECK(bool(verdict), "[graph run] {} cannot be packed as {}: {}", param.name, param.meta.packed,
             verdict.reason());
  return pack_weight(*packing, parts, *context.threads);
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
  check_sizes(graph, tensors, symbols);
  const auto rows = symbols.find(graph.governing_symbol());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (graph.inputs()[i]->meta.kind != MetaKind::kv) continue;
    if (!tensors[i].defined()) tensors[i] = Tensor::empty(graph.inputs()[i]->meta, pages);
    if (batch != nullptr && rows != symbols.end()) check_batch(*batch, tensors[i], rows->second);
  }
  return tensors;
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
  PassContext passes = pass_context(context, token_range(graph, context.options));
  PassRunnerOptions options = pass_runner_options(context.options);
  options.stop_after = std::min(stage, options.stop_after.value_or(stage));
  return run_passes(graph, passes, passes_of(context), options);
}

std::vector<PassRecord> run_named_passes(Graph& graph, const Context& context, const std::vector<std::string>& names) {
  complete_bounds(graph, context.options);
  PassContext passes = pass_context(context, token_range(graph, context.options));
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

std::vector<Tensor> run_graph_text(const std::shared_ptr<Graph>& graph, const Context& context,
                                   const TensorFile& inputs, const std::optional<Checkpoint>& checkpoint) {
  complete_bounds(*graph, context.options);
  const std::vector<Tensor> tensors = bind_inputs(*graph, inputs, context, checkpoint);
  std::vector<Tensor> results;
  // A view keeps its storage, and there is no next run.
  for (const Tensor& result : GraphProgram(context, graph).run(tensors)) results.push_back(contiguous(result));
  return results;
}

}  // namespace weft
