#pragma once

// Tracing: ordinary C++ code that runs over Values whose home is a Trace appends nodes to a graph.
//
//   Graph graph("mlp", Stage::traced);
//   Trace trace(ops, graph);
//   Value x = trace.input("x", Meta::tensor(DType::f32, {Dim::symbol("s0"), 576}));
//   trace.finish({mlp(x)});

#include <string>

#include "ir/graph.h"
#include "ir/inferred_results.h"

namespace weft {

// A branch on a size that the traced code took. It holds for all sizes of the graph.
struct SizeBranch {
  DimCondition condition;  // true on the branch taken: negated when the code's condition is false
  Reading reading;
};

class Trace : public Evaluator {
 public:
  // Appends to `graph`, before its node `before` when given. The graph and the node must outlive the trace.
  Trace(const OpTable& ops, Graph& graph, const Node* before = nullptr);

  Value input(std::string name, Meta meta);
  Value donated_input(std::string name, Meta meta);
  // A weight or table bound at load; `key` is its name in the checkpoint; when the rows of several weights are merged,
  // their names are joined by '+'.
  Value param(std::string name, Meta meta, std::string key);
  // The traced value of a value that is already in the graph.
  Value of(GraphValue* value);

  // Nodes appended from here on carry this origin, e.g. {{"layer", "3"}}.
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  // Sets what the graph returns.
  void finish(const Values& results);

  void called_from(const CallSite& site) override { site_ = site; }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;
  bool decide(const DimCondition& condition, const Reading& reading) override;
  // The branches decided so far. A comparison of two numbers is not recorded.
  const std::vector<SizeBranch>& branches() const { return branches_; }

 private:
  Graph& graph_;
  const Node* before_;
  Origin origin_;
  CallSite site_;  // of the next call
  InferredResults inferred_;
  std::vector<SizeBranch> branches_;
};

// Replaces the node by its meaning, in the node's own graph, and erases the node. InternalError for a primitive.
// Returns the inserted nodes in order.
std::vector<Node*> inline_meaning(Graph& graph, Node* node, const OpTable& ops);

}  // namespace weft
