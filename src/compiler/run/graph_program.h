#pragma once

// A hand-written graph, ready to run on tensors: compiled for the row counts that its text allows, or run op by op, as
// the Context's options say.

#include <memory>
#include <span>
#include <vector>

#include "compiler/store/plan_store.h"
#include "runtime/replay.h"

namespace weft {

class PieceVerification;

// Kernels are chosen for these row counts: the bounds of the governing symbol, or those of one step of the engine.
TokenRange token_range(const Graph& graph, const Options& options);

// Sets bounds for every symbol of the inputs; graphs from stage lowered on need them. Where the text has none, the
// bounds are those of one step of the engine.
void complete_bounds(Graph& graph, const Options& options);

// UserError, `[graph run] input x must be .., but is ..`, unless the tensor has the input's type. A dim that is a
// symbol takes the tensor's extent, which must be within its bounds and the same at each use. `symbols` has the sizes
// that are known so far; this call adds to it.
void check_input(const GraphValue& input, const Tensor& tensor, Bindings& symbols, const Bounds& bounds);

// UserError where a tensor does not have the size that an input's type computes from the symbols: align(s0, 128). The
// call follows check_input for each input; tensors that are not defined are not read.
void check_sizes(const Graph& graph, std::span<const Tensor> tensors, const Bindings& symbols);

// For a Context with a device, a compiled graph runs on the device: each run copies inputs to the device and results
// back. Only one thread at a time may use it. The Context must outlive it; with --enforce-eager its priorities must not
// change.
class GraphProgram {
 public:
  // The graph may be at any stage and must be legal; missing bounds and names are added to it. The Plan of a traced
  // graph is kept in the Context's compile cache. With --enforce-eager the graph runs op by op, with --compile-to the
  // graph of that stage does: UserError on a device whose memory the host cannot read.
  // UserError in each mode when the graph uses a donated value again. With --check-replay each run on the host is
  // compared with the graph, op by op, and a difference is an InternalError.
  GraphProgram(const Context& context, std::shared_ptr<Graph> graph);
  ~GraphProgram();

  // `inputs` are in the order of the graph's inputs and were checked by check_input and check_sizes. A run may
  // overwrite inputs that the graph donates. The results are valid until the next run; they may alias inputs.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  // What the compiler did; null with --enforce-eager. Where the Plan came from the compile cache, the first call runs
  // the passes again.
  const CompileRecord* record();

 private:
  std::vector<Tensor> replay(std::span<const Tensor> inputs);
  const Tensor& on_device(std::size_t index, const Tensor& input);

  const Context& context_;
  std::shared_ptr<Graph> graph_;
  TokenRange range_;
  std::vector<Tensor> places_;  // copies of inputs in device memory, at fixed addresses for the recorded launches
  bool is_compiled_ = false;
  CompiledRanges compiled_;                          // for one range
  std::unique_ptr<Replay> replay_;                   // none where there is no Plan
  std::unique_ptr<PieceVerification> verification_;  // with --check-replay
  ReplayMode mode_ = ReplayMode::none;
};

}  // namespace weft
