// lower: every op becomes a chosen kernel, or its meaning in smaller ops.
//
//   %y = rms_norm(%x, %w, epsilon=1e-05)   ->   %y = rms_norm@cpu(%x, %w, epsilon=1e-05)
//
// The pass chooses the first provider of the op's priority list that supports the call on this token range and does not
// leave it to generated code:
//
// - `native` replaces the node by its meaning, and the pass lowers the ops of the meaning. A node that generated code
//   computes as a whole stays until pieces are compiled, and so does a primitive. A primitive from such a meaning is
//   native too if a function can be generated for it and the user did not set its providers: the meaning then becomes
//   one function.
// - `reference` replaces the node by its meaning too, and all parts use reference kernels.
//
// The pass clones the arguments that a kernel overwrites; clone_elimination removes the clones that are not needed. It
// also clones the arguments that may be misaligned for a kernel that reads whole vectors (passes/vector_places.h).

#include "passes/lower.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "ir/print.h"
#include "ir/trace.h"
#include "passes/all.h"
#include "passes/vector_places.h"

namespace weft {
namespace {

// The request that kernels receive for a node.
struct RequestOf {
  std::vector<std::optional<Meta>> operands;
  std::vector<Meta> results;
  explicit RequestOf(const Node& node) {
    for (const GraphValue* operand : node.operands)
      operands.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
    for (const auto& result : node.results) results.push_back(result->meta);
  }
  KernelRequest with(const Node& node, TokenRange range) const { return {operands, results, node.attributes, range}; }
};

class Lowering {
 public:
  Lowering(Graph& graph, PassContext& context, bool writes_out = false)
      : graph_(graph),
        context_(context),
        writes_out_(writes_out),
        untuned_(writes_out ? std::optional(context.priorities.untuned()) : std::nullopt) {}

  PassResult run() {
    assign_names(graph_);
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) lower(node);
    assign_names(graph_);
    // Clones and the parts of meanings get their names only now.
    for (std::size_t i = 0; i < result_.choices.size(); ++i)
      if (chosen_[i] != nullptr) result_.choices[i].node = chosen_[i]->name;
    graph_.stage = Stage::lowered;
    result_.counts = {{"kernels", kernels_}, {"meanings", meanings_}, {"clones", clones_}};
    return std::move(result_);
  }

  void write_out() {
    std::vector<Node*> meant;
    for (const auto& node : graph_.nodes())
      if (node->provider == "native" && node->op != nullptr && !node->op->is_primitive()) meant.push_back(node.get());
    for (Node* node : meant)
      for (Node* part : inline_meaning(graph_, node, context_.ops)) lower(part, "native");
    assign_names(graph_);
  }

 private:
  // `meant_by`: if the node is a part of an inlined meaning, the provider chosen for the whole op; else "". `whole` is
  // the name of that op in the report.
  void lower(Node* node, const std::string& meant_by = "", const std::string& whole = "") {
    CHECK(node->op != nullptr, "{} is not an op of this program", node->name);
    if (node->op->is_view) {
      node->provider = "native";
      return;
    }
    const Choice choice = choose(*node, meant_by);
    const Kernel* kernel = choice.kernel;
    const bool stays = kernel != nullptr || node->op->is_primitive() || is_whole(*node, choice);
    const std::string name = name_of(*node, whole);
    result_.choices.push_back({name, node->name, layer_of(*node), choice, !stays});
    chosen_.push_back(stays ? node->result() : nullptr);
    if (!stays) {
      ++meanings_;
      for (Node* part : inline_meaning(graph_, node, context_.ops)) lower(part, choice.provider, name);
      return;
    }
    ++kernels_;
    node->provider = choice.provider;
    // If no generated function computes a native primitive, its reference kernel does.
    if (kernel == nullptr && node->op->is_primitive()) kernel = context_.kernels.find(node->name, "reference");
    if (kernel == nullptr) return;
    node->writes = kernel->writes;
    for (int index : kernel->writes) insert_clone(node, static_cast<std::size_t>(index));
    for (std::size_t i = 0; i < node->operands.size(); ++i)
      if (is_odd(node->operands[i], *kernel)) insert_clone(node, i);
  }

  // A part of a meaning that is itself replaced by its meaning never gets a name in the graph: rms_norm_0.cast_1.
  std::string name_of(const Node& node, const std::string& whole) {
    if (!node.result()->name.empty() || whole.empty()) return node.result()->name;
    const std::string name = whole + "." + node.name;
    const int earlier = parts_named_[name]++;
    return earlier == 0 ? name : fmt::format("{}_{}", name, earlier);
  }

  // Whether generated code computes the node's whole meaning. The meaning is then inlined when pieces are compiled,
  // once for all equal pieces.
  bool is_whole(const Node& node, const Choice& choice) {
    if (writes_out_ || choice.provider != "native" || !context_.generated_extent) return false;
    const RequestOf request(node);
    return context_.generated_extent(node.name, request.with(node, context_.range)) == GeneratedExtent::whole;
  }

  Choice choose(const Node& node, const std::string& meant_by) {
    if (meant_by == "reference")
      return {.provider = meant_by,
              .kernel = context_.kernels.find(node.name, meant_by),
              .reason = "a part of what reference computes"};
    if (meant_by == "native" && context_.is_generated != nullptr && context_.is_generated(node) &&
        context_.priorities.user().count(node.name) == 0)
      return {.provider = meant_by, .reason = "a part of what native computes"};
    const RequestOf request(node);
    std::optional<RequestOf> copied;
    const auto as_read = [&](const Kernel& kernel) {
      copied.reset();
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        if (!is_odd(node.operands[i], kernel)) continue;
        if (!copied) copied = request;
        copied->operands[i]->strides.clear();  // a copy is contiguous
      }
      return (copied ? *copied : request).with(node, context_.range);
    };
    return selector_.select(node.name, request.with(node, context_.range), as_read);
  }

  static bool is_odd(const GraphValue* operand, const Kernel& kernel) {
    return operand != nullptr && may_begin_between_vectors(*operand, kernel);
  }

  void insert_clone(Node* node, std::size_t index) {
    Trace trace(context_.ops, graph_, node);
    trace.set_origin(node->origin);
    const Value copy = call("clone", {trace.of(node->operands[index])}, {})[0];
    ++clones_;
    graph_.set_operand(node, index, copy.graph_value());
    lower(copy.graph_value()->producer);
  }

  Graph& graph_;
  PassContext& context_;
  bool writes_out_;
  // Measurements compare whole ops. They do not apply to the parts of a meaning that is written out.
  std::optional<PriorityLists> untuned_;
  KernelSelector selector_{context_.kernels, untuned_ ? *untuned_ : context_.priorities, context_.batch_invariant,
                           context_.generated_extent};
  PassResult result_;
  std::vector<const GraphValue*> chosen_;   // for each choice, the node's result; null if the meaning replaced the node
  std::map<std::string, int> parts_named_;  // how often name_of gave this name
  int kernels_ = 0, meanings_ = 0, clones_ = 0;
};

}  // namespace

PassResult lower(Graph& graph, PassContext& context) { return Lowering(graph, context).run(); }

void write_out_meanings(Graph& graph, PassContext& context) { Lowering(graph, context, true).write_out(); }

}  // namespace weft
