#pragma once

// A graph that somebody wrote, ready to run on tensors: compiled for the rows its text allows, or run op by op, as the
// Context's options say.

#include <memory>
#include <span>
#include <vector>

#include "compiler/pipeline.h"
#include "runtime/replay.h"

namespace weft {

// The rows that kernels are chosen for: the bounds of the governing symbol, or one step of the engine.
TokenRange token_range(const Graph& graph, const Options& options);

// Gives every symbol of the inputs bounds, as graphs from stage lowered on need them: those of one step of the engine
// where the text says nothing.
void complete_bounds(Graph& graph, const Options& options);

// UserError, `[graph run] input x must be .., but is ..`, unless the tensor is of the input's type. Dims that are
// symbols take the tensor's extent, within their bounds and the same everywhere: `symbols` is what is known so far.
void check_input(const GraphValue& input, const Tensor& tensor, Bindings& symbols, const Bounds& bounds);

// Compiled for a Context with a device it runs there: inputs are copied to the device and results back, on each run.
// For one thread at a time. The Context must outlive it, its priorities unchanged with --enforce-eager.
class GraphProgram {
 public:
  // The graph is at any stage and legal; it is changed. With --enforce-eager it is run as it is, op by op; with
  // --compile-to as that left it: UserError on a device whose memory the host cannot read.
  GraphProgram(const Context& context, std::shared_ptr<Graph> graph);

  // `inputs` in the order of the graph's inputs, checked by check_input. Inputs that the graph says are donated may be
  // written over. The results are valid until the next run; they may look into inputs.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  // What the compiler did; null with --enforce-eager.
  const CompileRecord* record() const { return is_compiled_ ? &compiled_.record : nullptr; }

 private:
  std::vector<Tensor> replay(std::span<const Tensor> inputs);
  const Tensor& on_device(std::size_t index, const Tensor& input);

  const Context& context_;
  std::shared_ptr<Graph> graph_;
  TokenRange range_;
  std::vector<Tensor> places_;  // of inputs in a device's memory, so that captures find them where they were
  bool is_compiled_ = false;
  Compiled compiled_;
  std::unique_ptr<Replay> replay_;  // none where there is no Plan
  ReplayMode mode_ = ReplayMode::none;
};

}  // namespace weft
