#pragma once

// A graph: inputs, a list of nodes in topological order, and results. One Node type for every op.
//
// Graphs are changed in place, by passes, and verified after each; no pass holds a node across passes. Use lists are
// kept right by every function here. The text form is ir/print.h and ir/parse.h.

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

enum class Stage : std::uint8_t { traced, pure, lowered, split };
std::string_view stage_text(Stage stage);
std::optional<Stage> stage_from_text(std::string_view text);

struct Node;
using NodeList = std::list<std::unique_ptr<Node>>;

struct Use {
  Node* node = nullptr;
  int operand = 0;
  bool operator==(const Use&) const = default;
};

struct GraphValue {
  Node* producer = nullptr;  // null for an input of the graph
  int index = 0;             // result number, or input number
  Meta meta;
  std::string name;       // without `%`; "" until printing gives one
  std::vector<Use> uses;  // in no particular order

  // Inputs only.
  bool donated = false;     // the caller gives its storage away
  bool param = false;       // bound once, at load: a weight or a table
  std::string key;          // the checkpoint key of a param, "" when it has none
  bool overwrites = false;  // pieces: the piece writes over this input
};

enum class NodeKind : std::uint8_t { op, call, result };

// Origins say where a node comes from, for people: `layer=3`. Ignored by equality.
using Origin = std::vector<std::pair<std::string, std::string>>;

struct Node {
  NodeKind kind = NodeKind::op;
  std::string name;                   // the op's name, or for a call the callee's
  const Op* op = nullptr;             // null for a call, the result node, and an op this process does not know
  std::vector<GraphValue*> operands;  // schema order; null for an absent optional tensor
  Attributes attributes;              // complete and in schema order when `op` is known
  std::vector<std::unique_ptr<GraphValue>> results;
  Origin origin;
  bool maybe_inplace = false;   // stage traced
  std::string provider;         // stage lowered: who computes it, "" before
  std::vector<int> writes;      // stage lowered: operands the kernel writes over
  std::vector<int> results_in;  // result node of a piece: the input each result lives in, or -1
  NodeList::iterator position;  // in its graph's list; the result node has none
  int line = 0;                 // in the text it was parsed from; 0 when not parsed
  CallSite site = {};           // of the typed op function that made it; line 0 when none did. For people

  GraphValue* result(std::size_t i = 0) const { return results[i].get(); }
  bool is(std::string_view op_name) const { return kind == NodeKind::op && name == op_name; }
};

// The layer of a node's origin; "" outside layers.
std::string layer_of(const Node& node);

enum class DefinitionKind : std::uint8_t { graph, piece, splitting };

class Graph {
 public:
  explicit Graph(std::string name = "g", Stage stage = Stage::traced);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name;
  DefinitionKind kind = DefinitionKind::graph;
  Stage stage;
  DeviceId device;
  Bounds bounds;                               // what is known of each symbol
  std::vector<std::shared_ptr<Graph>> pieces;  // stage split: the definitions `call` nodes refer to

  GraphValue* add_input(Meta meta, std::string name = "");
  const std::vector<std::unique_ptr<GraphValue>>& inputs() const { return inputs_; }
  // Removes an input without uses.
  void erase_input(GraphValue* input);

  const NodeList& nodes() const { return nodes_; }
  // Appends a node (or inserts it before `before`) and gives it results of these types.
  Node* add_node(std::unique_ptr<Node> node, std::vector<Meta> result_metas, const Node* before = nullptr);
  Node* add_op(const Op& op, std::vector<GraphValue*> operands, Attributes attributes, std::vector<Meta> result_metas,
               const Node* before = nullptr);
  // Moves a node before another one.
  void move_before(Node* node, const Node* before);
  // InternalError when a result still has uses.
  void erase(Node* node);

  // What the graph returns, as operands of one node that stands after all others.
  Node* result_node() const { return result_.get(); }
  const std::vector<GraphValue*>& results() const { return result_->operands; }
  void set_results(std::vector<GraphValue*> results);

  void set_operand(Node* node, std::size_t index, GraphValue* value);
  void replace_all_uses(GraphValue* from, GraphValue* to);

  std::shared_ptr<Graph> clone() const;
  // Takes over the inputs, nodes and results of `other`, which is left empty, and its stage.
  void take_body(Graph& other);
  const Graph* find_piece(std::string_view piece_name) const;
  // The one symbol that may stand in dim 0 of the values: that of the first result that has one, else of the first
  // input that has one; "" when none.
  std::string governing_symbol() const;

 private:
  std::vector<std::unique_ptr<GraphValue>> inputs_;
  NodeList nodes_;
  std::unique_ptr<Node> result_;
};

bool is_result(const GraphValue& value);  // whether the graph returns it

// Position of every node in order, from 0; the result node comes last.
std::map<const Node*, int> node_positions(const Graph& graph);

}  // namespace weft
