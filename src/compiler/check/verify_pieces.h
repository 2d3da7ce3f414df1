#pragma once

// Compares compiled pieces with their graphs while a model runs. For each call of each piece, its operands are copied
// first, the piece's graph runs op by op on the copies, and its results are compared with those of the compiled
// piece, by the rule of tensor/same_elements.h. On a device the op-by-op run also launches the device's kernels, one at
// a time, since the host may sum in another order. Ops of generated functions run on kernels of the host there, as they
// compute the same bits on each machine. Operands that the piece overwrites (KV pages, a residual) are copied for the
// op-by-op run, so that neither run sees the other's writes.
//
// Each value that one piece passes to another is also copied when it is made, and compared with what the next piece
// reads. This finds a Plan that overwrites a value before its last use. Of KV pages, only those of the sequences in the
// batch are copied and compared; nothing reads the others.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/check/tensor_difference.h"
#include "compiler/pipeline.h"
#include "runtime/replay.h"

namespace weft {

// The results of one piece over all its calls.
struct PieceVerdict {
  std::string graph;
  std::string piece;
  TokenRange range;  // all ranges that the Plan serves
  bool is_splitting = false;
  std::int64_t calls = 0;
  std::int64_t differing_calls = 0;  // calls whose results differ in some bit
  std::int64_t spoiled_calls = 0;    // calls with an operand that differs from what was made
  double largest = 0;                // difference of a result from the graph's result
  double largest_ulps = 0;
  // The value and the call of the largest difference or, if there is none, of the first overwritten value. Runs count
  // from 1.
  std::string value = {};
  std::string layer = {};
  std::int64_t run = 0;

  bool is_right() const { return differing_calls == 0 && spoiled_calls == 0; }
};

// One call that was compared, with its operands from before the call.
struct VerifiedCall {
  const PieceVerdict& verdict;
  const CompileRecord& record;
  const Node& call;  // in the record's split graph
  const std::vector<Tensor>& operands;
  bool differs = false;
};

class PieceVerification {
 public:
  // The Context must outlive this object, and its priorities must not change.
  explicit PieceVerification(const Context& context);
  ~PieceVerification();
  PieceVerification(const PieceVerification&) = delete;
  PieceVerification& operator=(const PieceVerification&) = delete;

  // Verifies each later run of the Replay; this replaces the Replay's observer. `record` is the record of its Plan.
  // Both must stay at their addresses, and the Replay must not run after this object is destroyed. InternalError when
  // the Plan is not the one that the record's graph gives.
  void watch(Replay& replay, const CompileRecord& record);

  // Each difference is an InternalError from then on that names the piece: --check-replay. Replaces `on_call`.
  void fail_where_different();

  // Which kernels run the graphs, for reports: "kernels of NVIDIA H100, and of the host where it has none".
  std::string op_by_op_text() const;

  // One verdict for each graph, range and piece, in the order of the graphs.
  std::vector<PieceVerdict> verdicts() const;

  // Called after each comparison; may be null.
  std::function<void(const VerifiedCall&)> on_call;

 private:
  class Watched;
  const Context& context_;
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace weft
