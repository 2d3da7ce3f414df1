#include <algorithm>

#include "base/json.h"
#include "builtin/context.h"
#include "capi/handles.h"
#include "capi/tensor_view.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace weft {
namespace {

std::vector<Tensor> bind_inputs(const weft_graph& graph, const weft_tensor_view* views) {
  std::vector<Tensor> inputs;
  Bindings symbols;
  for (const auto& input : graph.graph->inputs()) {
    USER_CHECK(input->meta.is_tensor(), "[weft_graph_run] input {} is of type {}, but only tensors can be given",
               input->name, input->meta.text());
    inputs.push_back(tensor_from(views[inputs.size()], "weft_graph_run: input " + input->name));
    check_input(*input, inputs.back(), symbols, graph.graph->bounds);
  }
  check_sizes(*graph.graph, inputs, symbols);
  return inputs;
}

void run(weft_graph& graph, const weft_tensor_view* input_views, const weft_tensor_view* result_views) {
  const std::vector<Tensor> inputs = bind_inputs(graph, input_views);
  std::vector<Tensor> results = graph.program->run(inputs);
  // A result may alias an input in the caller's memory. Copying another result there could overwrite it, so it is
  // copied first.
  for (Tensor& result : results)
    for (const Tensor& input : inputs)
      if (result.storage == input.storage) {
        const Tensor plain = contiguous(result);
        result = Tensor::from_bytes(plain.meta, plain.data());
      }
  for (std::size_t i = 0; i < results.size(); ++i)
    copy_to(result_views[i], results[i], fmt::format("weft_graph_run: result {}", i));
}

Json description(const GraphValue& value) { return {{"name", value.name}, {"type", value.meta.text()}}; }

}  // namespace
}  // namespace weft

extern "C" {

int weft_graph_compile(weft_context* context, const char* text, weft_graph** graph, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_graph_compile";
    weft::given(graph, name, "graph") = nullptr;
    weft::given(context, name, "context");
    const std::string source = weft::given_text(text, name, "text");
    auto made = std::make_unique<weft_graph>();
    const weft::WarningScope warnings(weft::sink_of(context->notes));
    made->context = weft::make_context(weft::options_of(*context));
    const auto parsed = weft::parse_graph(source, made->context->ops, name);
    weft::verify_text(*parsed, made->context->ops, name);
    weft::complete_bounds(*parsed, made->context->options);
    made->graph = parsed->clone();
    made->program = std::make_unique<weft::GraphProgram>(*made->context, parsed);
    *graph = made.release();
  });
}

int weft_graph_close(weft_graph* graph, weft_error* error) {
  return weft::at_boundary(error, [&] {
    if (graph == nullptr) return;
    { const weft::HandleMutex::Lock last(graph->mutex, "weft_graph_close"); }
    delete graph;
  });
}

int weft_graph_describe(weft_graph* graph, char** json, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(json, "weft_graph_describe", "json") = nullptr;
    const weft::Graph& described = *weft::given(graph, "weft_graph_describe", "graph").graph;
    weft::Json inputs = weft::Json::array(), results = inputs;
    for (const auto& input : described.inputs()) inputs.push_back(weft::description(*input));
    for (const weft::GraphValue* result : described.results()) results.push_back(weft::description(*result));
    *json = weft::text_for_caller(
        weft::json_text(weft::Json{{"name", described.name}, {"inputs", inputs}, {"results", results}}));
  });
}

int weft_graph_run(weft_graph* graph, const weft_tensor_view* inputs, size_t input_count,
                   const weft_tensor_view* results, size_t result_count, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_graph_run";
    const weft::Graph& run_graph = *weft::given(graph, name, "graph").graph;
    USER_CHECK(input_count == run_graph.inputs().size(), "[{}] {} has {} inputs, but {} are given", name,
               run_graph.name, run_graph.inputs().size(), input_count);
    USER_CHECK(result_count == run_graph.results().size(), "[{}] {} has {} results, but memory for {} is given", name,
               run_graph.name, run_graph.results().size(), result_count);
    if (input_count > 0) weft::given(inputs, name, "inputs");
    if (result_count > 0) weft::given(results, name, "results");
    const weft::HandleMutex::Lock lock(graph->mutex, name);
    weft::run(*graph, inputs, results);
  });
}

int weft_graph_selected_impls(weft_graph* graph, char** json, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(json, "weft_graph_selected_impls", "json") = nullptr;
    weft::given(graph, "weft_graph_selected_impls", "graph");
    std::vector<const weft::CompileRecord*> records;
    if (const weft::CompileRecord* record = graph->program->record()) records.push_back(record);
    *json = weft::text_for_caller(weft::selected_impls_json(records));
  });
}
}
