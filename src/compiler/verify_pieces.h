#pragma once

// Holds compiled pieces against their graphs while a model runs. For every call of every piece: what it takes is copied
// before it runs, the piece's graph is run op by op on the copies, and what the compiled piece gave is compared with
// what came out, bit for bit: on a device its own kernels are launched op by op as well, one at a time, since the
// host's sums may be in another order. What generated functions compute is the same on every machine, and run there by
// kernels of the host. What it writes over (KV pages, a residual) is copied for the run that is not compiled, so
// neither sees what the other does.
//
// Each value that goes from piece to piece is also kept as it was made and held against what the next piece finds: a
// Plan that lets one value be written over while it is still wanted is found as well. Of KV pages, those of the
// sequences in the batch are copied and compared; the others nobody reads.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "compiler/tensor_difference.h"
#include "runtime/replay.h"

namespace weft {

// What one piece did in all its calls.
struct PieceVerdict {
  std::string graph;
  std::string piece;
  TokenRange range;  // of all that the Plan serves
  bool is_splitting = false;
  std::int64_t calls = 0;
  std::int64_t differing_calls = 0;  // whose results are other bits
  std::int64_t spoiled_calls = 0;    // that found a value other than it was made
  double largest = 0;                // difference of a result from that of the graph
  double largest_ulps = 0;
  // The value and the call of the largest difference, or else of the first spoiled value. Runs count from 1.
  std::string value = {};
  std::string layer = {};
  std::int64_t run = 0;

  bool is_right() const { return differing_calls == 0 && spoiled_calls == 0; }
};

// One call that was compared, with what it took as it was before.
struct VerifiedCall {
  const PieceVerdict& verdict;
  const CompileRecord& record;
  const Node& call;  // in the record's split graph
  const std::vector<Tensor>& operands;
  bool differs = false;
};

class PieceVerification {
 public:
  // The Context must outlive it, its priorities unchanged.
  explicit PieceVerification(const Context& context);
  ~PieceVerification();
  PieceVerification(const PieceVerification&) = delete;
  PieceVerification& operator=(const PieceVerification&) = delete;

  // Verifies every run of the Replay from now on, in the place of its observer. `record` is what its Plan was compiled
  // from. Both must stay where they are, and the Replay not run once this is gone. InternalError when the Plan is not
  // what the record's graph comes to.
  void watch(Replay& replay, const CompileRecord& record);

  // Who runs what of the graphs, for reports: "kernels of NVIDIA H100, and of the host where it has none".
  std::string op_by_op_text() const;

  // By graph, range and piece, in the order of the graphs.
  std::vector<PieceVerdict> verdicts() const;

  // Called after each call was compared; null for none.
  std::function<void(const VerifiedCall&)> on_call;

 private:
  class Watched;
  const Context& context_;
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace weft
