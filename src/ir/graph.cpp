#include "ir/graph.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 4> kStageText = {"traced", "pure", "lowered", "split"};

void remove_use(GraphValue* value, Use use) {
  if (value == nullptr) return;
  auto found = std::find(value->uses.begin(), value->uses.end(), use);
  CHECK(found != value->uses.end(), "use list of %{} lost a use", value->name);
  value->uses.erase(found);
}

void add_uses(Node* node) {
  for (std::size_t i = 0; i < node->operands.size(); ++i)
    if (node->operands[i] != nullptr) node->operands[i]->uses.push_back({node, static_cast<int>(i)});
}

void remove_uses(Node* node) {
  for (std::size_t i = 0; i < node->operands.size(); ++i) remove_use(node->operands[i], {node, static_cast<int>(i)});
}

NodeList::iterator insertion_point(NodeList& nodes, const Node* before) {
  return before == nullptr || before->kind == NodeKind::result ? nodes.end() : before->position;
}

}  // namespace

std::string layer_of(const Node& node) {
  for (const auto& [key, value] : node.origin)
    if (key == "layer") return value;
  return "";
}

std::string_view stage_text(Stage stage) { return kStageText[static_cast<std::size_t>(stage)]; }

std::optional<Stage> stage_from_text(std::string_view text) {
  for (std::size_t i = 0; i < kStageText.size(); ++i)
    if (kStageText[i] == text) return static_cast<Stage>(i);
  return std::nullopt;
}

Graph::Graph(std::string name, Stage stage) : name(std::move(name)), stage(stage), result_(std::make_unique<Node>()) {
  result_->kind = NodeKind::result;
  result_->name = "return";
}

Graph::~Graph() = default;

GraphValue* Graph::add_input(Meta meta, std::string input_name) {
  auto input = std::make_unique<GraphValue>();
  input->index = static_cast<int>(inputs_.size());
  input->meta = std::move(meta);
  input->name = std::move(input_name);
  inputs_.push_back(std::move(input));
  return inputs_.back().get();
}

void Graph::erase_input(GraphValue* input) {
  CHECK(input->uses.empty(), "input %{} still has uses", input->name);
  inputs_.erase(inputs_.begin() + input->index);
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index = static_cast<int>(i);
}

Node* Graph::add_node(std::unique_ptr<Node> node, std::vector<Meta> result_metas, const Node* before) {
  for (std::size_t i = 0; i < result_metas.size(); ++i) {
    auto value = std::make_unique<GraphValue>();
    value->producer = node.get();
    value->index = static_cast<int>(i);
    value->meta = std::move(result_metas[i]);
    node->results.push_back(std::move(value));
  }
  add_uses(node.get());
  auto inserted = nodes_.insert(insertion_point(nodes_, before), std::move(node));
  (*inserted)->position = inserted;
  return inserted->get();
}

Node* Graph::add_op(const Op& op, std::vector<GraphValue*> operands, Attributes attributes,
                    std::vector<Meta> result_metas, const Node* before) {
  auto node = std::make_unique<Node>();
  node->name = op.name;
  node->op = &op;
  node->operands = std::move(operands);
  node->attributes = std::move(attributes);
  return add_node(std::move(node), std::move(result_metas), before);
}

void Graph::move_before(Node* node, const Node* before) {
  nodes_.splice(insertion_point(nodes_, before), nodes_, node->position);
}

void Graph::erase(Node* node) {
  for (const auto& result : node->results)
    CHECK(result->uses.empty(), "{} cannot be erased: %{} still has uses", node->name, result->name);
  remove_uses(node);
  nodes_.erase(node->position);
}

void Graph::set_results(std::vector<GraphValue*> results) {
  remove_uses(result_.get());
  result_->operands = std::move(results);
  add_uses(result_.get());
}

void Graph::set_operand(Node* node, std::size_t index, GraphValue* value) {
  remove_use(node->operands[index], {node, static_cast<int>(index)});
  node->operands[index] = value;
  if (value != nullptr) value->uses.push_back({node, static_cast<int>(index)});
}

void Graph::replace_all_uses(GraphValue* from, GraphValue* to) {
  const std::vector<Use> uses = from->uses;
  for (const Use& use : uses) set_operand(use.node, static_cast<std::size_t>(use.operand), to);
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>(name, stage);
  copy->kind = kind;
  copy->device = device;
  copy->bounds = bounds;
  copy->pieces = pieces;
  std::map<const GraphValue*, GraphValue*> values{{nullptr, nullptr}};
  for (const auto& input : inputs_) {
    GraphValue* value = copy->add_input(input->meta, input->name);
    value->donated = input->donated;
    value->param = input->param;
    value->key = input->key;
    value->overwrites = input->overwrites;
    values[input.get()] = value;
  }
  auto mapped = [&](const Node& node) {
    std::vector<GraphValue*> operands;
    for (const GraphValue* operand : node.operands) operands.push_back(values.at(operand));
    return operands;
  };
  for (const auto& node : nodes_) {
    auto twin = std::make_unique<Node>();
    twin->kind = node->kind;
    twin->name = node->name;
    twin->op = node->op;
    twin->operands = mapped(*node);
    twin->attributes = node->attributes;
    twin->origin = node->origin;
    twin->maybe_inplace = node->maybe_inplace;
    twin->provider = node->provider;
    twin->writes = node->writes;
    twin->line = node->line;
    twin->site = node->site;
    std::vector<Meta> metas;
    for (const auto& result : node->results) metas.push_back(result->meta);
    Node* added = copy->add_node(std::move(twin), std::move(metas));
    for (std::size_t i = 0; i < node->results.size(); ++i) {
      added->results[i]->name = node->results[i]->name;
      values[node->results[i].get()] = added->results[i].get();
    }
  }
  copy->set_results(mapped(*result_));
  copy->result_->results_in = result_->results_in;
  copy->result_->line = result_->line;
  return copy;
}

void Graph::take_body(Graph& other) {
  stage = other.stage;
  nodes_.swap(other.nodes_);  // list iterators stay valid
  inputs_.swap(other.inputs_);
  result_.swap(other.result_);
}

const Graph* Graph::find_piece(std::string_view piece_name) const {
  for (const auto& piece : pieces)
    if (piece->name == piece_name) return piece.get();
  return nullptr;
}

std::string Graph::governing_symbol() const {
  for (const auto name : {&Dim::symbol_name, &Dim::multiplied_symbol_name}) {
    const auto symbol_of = [&](const Meta& meta) {
      return meta.is_tensor() && !meta.shape.empty() ? (meta.shape[0].*name)() : std::string();
    };
    for (const auto& node : nodes_)
      for (const auto& result : node->results)
        if (std::string symbol = symbol_of(result->meta); !symbol.empty()) return symbol;
    for (const GraphValue* result : results())
      if (std::string symbol = symbol_of(result->meta); !symbol.empty()) return symbol;
    for (const auto& input : inputs_)
      if (std::string symbol = symbol_of(input->meta); !symbol.empty() && !input->param) return symbol;
  }
  return "";
}

bool is_result(const GraphValue& value) {
  return std::any_of(value.uses.begin(), value.uses.end(),
                     [](const Use& use) { return use.node->kind == NodeKind::result; });
}

std::map<const Node*, int> node_positions(const Graph& graph) {
  std::map<const Node*, int> positions;
  int next = 0;
  for (const auto& node : graph.nodes()) positions[node.get()] = next++;
  positions[graph.result_node()] = next;
  return positions;
}

}  // namespace weft
