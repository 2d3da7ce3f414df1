#pragma once

// Tracing: running ordinary C++ over Values whose home is a Trace appends nodes to a graph.
//
//   Graph graph("mlp", Stage::traced);
//   Trace trace(ops, graph);
//   Value x = trace.input("x", Meta::tensor(DType::f32, {Dim::symbol("s0"), 576}));
//   trace.finish({mlp(x)});

#include <string>

#include "ir/graph.h"
#include "ir/inferred_results.h"

namespace weft {

// A branch on a size that code took for all sizes at once.
struct SizeBranch {
  DimCondition condition;  // as it holds
  Reading reading;
};

class Trace : public Evaluator {
 public:
  // Appends to `graph`, before its node `before` when given. Both must outlive the trace.
  Trace(const OpTable& ops, Graph& graph, const Node* before = nullptr);

  Value input(std::string name, Meta meta);
  Value donated_input(std::string name, Meta meta);
  // A weight or table bound at load; `key` is its name in the checkpoint, several joined by '+' when rows are merged.
  Value param(std::string name, Meta meta, std::string key);
  // The traced value of a graph value that is there already.
  Value of(GraphValue* value);

  // Nodes appended from here on carry this origin, e.g. {{"layer", "3"}}.
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  // Sets what the graph returns.
  void finish(const Values& results);

  void called_from(const CallSite& site) override { site_ = site; }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;
  bool decide(const DimCondition& condition, const Reading& reading) override;
  // What was decided so far; comparisons of numbers are none.
  const std::vector<SizeBranch>& branches() const { return branches_; }

 private:
  Graph& graph_;
  const Node* before_;
  Origin origin_;
  CallSite site_;  // of the call that comes
  InferredResults inferred_;
  std::vector<SizeBranch> branches_;
};

// Puts the node's meaning in its place, in the node's own graph, and erases the node. InternalError for a primitive.
// Returns the nodes that came in, in order.
std::vector<Node*> inline_meaning(Graph& graph, Node* node, const OpTable& ops);

}  // namespace weft
