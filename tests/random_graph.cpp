#include "tests/random_graph.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <set>

#include <fmt/core.h>

#include "ir/alias.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace weft {
namespace {

constexpr std::array kReals = {1.0, -0.0, 0.1, 1e-5, 1e300, 5e-324, -3.0};

class RandomBuilder {
 public:
  RandomBuilder(const GraphRecipe& recipe, const OpTable& ops) : recipe_(recipe), ops_(ops), graph_(new Graph("r")) {}

  std::shared_ptr<Graph> build() {
    for (int i = 0; i <= recipe_.inputs % 3; ++i) {
      rows_.push_back(graph_->add_input(kRows, recipe_.inputs / 3 % 2 == 0 ? "in." + std::to_string(i) : ""));
      rows_.back()->donated = (recipe_.donated >> i) % 2 == 1;
    }
    weight_ = graph_->add_input(Meta::tensor(DType::f32, {64}), "w");
    weight_->param = true;
    weight_->key = "blk.\"1\"\n";
    for (const NodeRecipe& node : recipe_.nodes) add(node);
    std::vector<GraphValue*> results = {rows_.back()};
    for (const int choice : recipe_.results) {
      const std::size_t at = static_cast<std::size_t>(choice) % (rows_.size() + others_.size());
      results.push_back(at < rows_.size() ? rows_[at] : others_[at - rows_.size()]);
    }
    graph_->set_results(std::move(results));
    return graph_;
  }

 private:
  inline static const Meta kRows = Meta::tensor(DType::f32, {Dim::symbol("s0"), 64});

  GraphValue* row(int choice) const { return rows_[static_cast<std::size_t>(choice) % rows_.size()]; }

  Node* call(const char* name, std::vector<GraphValue*> operands, const NamedAttributes& given = {}) {
    const Op& op = ops_.at(name);
    const Attributes attributes = complete_attributes(op.schema, given);
    std::vector<std::optional<Meta>> metas;
    for (const GraphValue* operand : operands)
      metas.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
    return graph_->add_op(op, std::move(operands), attributes, infer_results(op, ops_, metas, attributes));
  }

  void add(const NodeRecipe& recipe) {
    Node* node = choose(recipe);
    if (recipe.detail % 3 == 0) node->result()->name = "named_" + std::to_string(graph_->nodes().size());
    if (recipe.detail % 4 == 0) node->origin = {{"layer", std::to_string(recipe.detail % 9)}, {"part", "mlp"}};
    for (const auto& result : node->results) (result->meta == kRows ? rows_ : others_).push_back(result.get());
  }

  Node* choose(const NodeRecipe& recipe) {
    GraphValue *x = row(recipe.first), *y = row(recipe.second);
    const double real = kReals[static_cast<std::size_t>(recipe.detail) % kReals.size()];
    switch (recipe.op % 18) {
      case 0:
        return call("add", {x, y});
      case 1:
        return call("mul", {x, y});
      case 2:
        return call("mul_scalar", {x}, {{"value", real}});
      case 3:
        return call("rms_norm", {x, recipe.detail % 2 == 0 ? weight_ : nullptr}, {{"epsilon", 1e-6}});
      case 4:
        return call("fused_add_rms_norm", {x, y, recipe.detail % 2 == 0 ? weight_ : nullptr}, {{"epsilon", 1e-5}});
      case 5:
      case 6:
        return give_away(call("fused_add_rms_norm", {x, y, nullptr}, {{"epsilon", 1e-5}}), x, y);
      case 7: {
        const Node* view = call("reshape", {x}, {{"shape", Attribute::shape({Dim::symbol("s0"), 4, 16})}});
        others_.push_back(view->result());
        return call("reshape", {view->result()}, {{"shape", Attribute::shape({Dim::symbol("s0"), 64})}});
      }
      case 8: {
        const int cut = 16 * (1 + recipe.detail % 3);
        const Node* left = call("slice", {x}, {{"dim", 1}, {"start", 0}, {"end", cut}});
        const Node* right = call("slice", {x}, {{"dim", 1}, {"start", cut}, {"end", 64}});
        others_.push_back(left->result());
        return call("concat", {right->result(), left->result()}, {{"dim", 1}});
      }
      case 9:
        return call("clamp", {x}, {{"min", recipe.detail % 2 == 0 ? Attribute(-1.5) : Attribute()}});
      case 10:
        return call("per_token_group_quant_int8", {x}, {{"group_size", 32}});
      case 11: {
        const Node* narrow = call("cast", {x}, {{"dtype", recipe.detail % 2 == 0 ? DType::bf16 : DType::f32}});
        return call("cast", {narrow->result()}, {{"dtype", DType::f32}});
      }
      case 12:
        return call("clone", {x});
      case 13:
        return rotated(x, y);
      case 14:
        return give_away(rotated(x, y), x, y);
      case 15:
        return halves(x);
      default:
        return repeat(x);
    }
  }

  Node* rotated(GraphValue* x, GraphValue* y) {
    if (positions_ == nullptr) {
      positions_ = graph_->add_input(Meta::tensor(DType::i64, {Dim::symbol("s0")}), "positions");
      table_ = graph_->add_input(Meta::tensor(DType::f32, {64, 8}), "table");
      table_->param = true;
    }
    return call("rotary_embedding", {positions_, x, y, table_}, {{"head_size", 16}, {"rotary_dim", 8}});
  }

  // Makes the node a .maybe_inplace one if its arguments can be donated. Then no later node may read them, or views of
  // their storage.
  Node* give_away(Node* node, GraphValue* x, GraphValue* y) {
    if (storage_root(x) != storage_root(y)) give(node, {storage_root(x), storage_root(y)});
    return node;
  }

  void give(Node* node, const std::set<const GraphValue*>& roots) {
    node->maybe_inplace = true;
    given_.insert(roots.begin(), roots.end());
    for (std::vector<GraphValue*>* values : {&rows_, &others_})
      std::erase_if(*values, [&](const GraphValue* value) { return roots.contains(storage_root(value)); });
  }

  // Donates both halves of the columns of x to one call, and concatenates its results.
  Node* halves(GraphValue* x) {
    GraphValue* left = call("slice", {x}, {{"dim", 1}, {"start", 0}, {"end", 32}})->result();
    GraphValue* right = call("slice", {x}, {{"dim", 1}, {"start", 32}, {"end", 64}})->result();
    Node* node = call("fused_add_rms_norm", {right, left, nullptr}, {{"epsilon", 1e-5}});
    give(node, {storage_root(x)});
    return call("concat", {node->result(0), node->result(1)}, {{"dim", 1}});
  }

  // The previous node again, if its operands can still be read.
  Node* repeat(GraphValue* x) {
    const Node* last = graph_->nodes().empty() ? nullptr : graph_->nodes().back().get();
    const bool readable =
        last != nullptr && std::none_of(last->operands.begin(), last->operands.end(), [&](const GraphValue* operand) {
          return operand != nullptr && given_.contains(storage_root(operand));
        });
    if (!readable) return call("neg", {x});
    return call(last->name.c_str(), last->operands, last->attributes.entries());
  }

  const GraphRecipe& recipe_;
  const OpTable& ops_;
  std::shared_ptr<Graph> graph_;
  GraphValue* weight_ = nullptr;
  GraphValue *positions_ = nullptr, *table_ = nullptr;  // made by the first node that needs them
  std::set<const GraphValue*> given_;                   // donated storage
  std::vector<GraphValue*> rows_;                       // of type kRows, not donated
  std::vector<GraphValue*> others_;                     // of other types, to return
};

// The identity of a node's computation, from those of its operands.
std::string meaning_of(const Node& node) {
  std::string text = node.name;
  for (const GraphValue* operand : node.operands) text += fmt::format(",{}", static_cast<const void*>(operand));
  for (const auto& [key, value] : node.attributes.entries()) text += "," + key + "=" + value.text();
  return text;
}

}  // namespace

std::shared_ptr<Graph> build_graph(const GraphRecipe& recipe, const OpTable& ops) {
  return RandomBuilder(recipe, ops).build();
}

GraphFeatures features_of(const Graph& graph) {
  GraphFeatures features;
  std::set<std::string> computed;
  auto count_readers = [&](const GraphValue& value) {
    std::set<const Node*> readers;
    for (const Use& use : value.uses) readers.insert(use.node);
    features.shared_values += readers.size() > 1 ? 1 : 0;
    return readers.size();
  };
  for (const auto& input : graph.inputs()) {
    count_readers(*input);
    features.donated_inputs += input->donated ? 1 : 0;
    features.params += input->param ? 1 : 0;
  }
  for (const auto& node : graph.nodes()) {
    const bool is_view = node->op != nullptr && node->op->is_view;
    features.views += is_view ? 1 : 0;
    features.strided_views += is_view && !node->result()->meta.is_contiguous() ? 1 : 0;
    features.several_results += node->results.size() > 1 ? 1 : 0;
    features.given_away += node->maybe_inplace || !node->writes.empty() ? 1 : 0;
    features.absent_operands += static_cast<int>(std::count(node->operands.begin(), node->operands.end(), nullptr));
    features.repeated_nodes += computed.insert(meaning_of(*node)).second ? 0 : 1;
    features.calls += node->kind == NodeKind::call ? 1 : 0;
    std::size_t readers = 0;
    for (const auto& result : node->results) readers += count_readers(*result);
    features.unread_nodes += readers == 0 ? 1 : 0;
  }
  features.returned = static_cast<int>(graph.results().size()) - 1;
  return features;
}

GraphFeatures& GraphFeatures::operator+=(const GraphFeatures& other) {
  views += other.views;
  strided_views += other.strided_views;
  shared_values += other.shared_values;
  several_results += other.several_results;
  returned += other.returned;
  given_away += other.given_away;
  donated_inputs += other.donated_inputs;
  params += other.params;
  absent_operands += other.absent_operands;
  repeated_nodes += other.repeated_nodes;
  unread_nodes += other.unread_nodes;
  calls += other.calls;
  return *this;
}

std::string GraphFeatures::text() const {
  return fmt::format(
      "views {}, strided views {}, shared values {}, nodes of several results {}, further results {}, donated {}, "
      "donated inputs {}, params {}, absent operands {}, repeated nodes {}, unread nodes {}, calls {}",
      views, strided_views, shared_values, several_results, returned, given_away, donated_inputs, params,
      absent_operands, repeated_nodes, unread_nodes, calls);
}

std::string broken_text_law(const Graph& graph, const OpTable& ops) {
  const std::string text = display(graph), form = canonical(graph);
  const auto again = parse_graph(text, ops, "display");
  if (!structurally_equal(*again, graph)) return "parse(display(g)) == g:\n" + text + form + canonical(*again);
  if (display(*again) != text) return "display(parse(t)) == t:\n" + text + display(*again);
  if (structural_hash(*again) != structural_hash(graph)) return "equal graphs have equal hashes:\n" + text;
  const std::string form_again = canonical(*parse_graph(form, ops, "canonical"));
  if (form_again != form) return "canonical(parse(canonical(g))) == canonical(g):\n" + form + form_again;
  if (display(*graph.clone()) != text) return "display(clone(g)) == display(g):\n" + text + display(*graph.clone());
  return "";
}

void showValue(const GraphRecipe& recipe, std::ostream& out) {
  static const OpTable ops = make_op_table();
  out << "\n" << display(*build_graph(recipe, ops));
}

}  // namespace weft
