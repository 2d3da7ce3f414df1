#pragma once

// A graph: inputs, a list of nodes in topological order, and results. All ops have the same Node type.
//
// Passes change a graph in place, and the graph is verified after each pass. No pass keeps a node for a later pass.
// Every function here keeps the use lists correct. The text form is ir/print.h and ir/parse.h.

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
  int index = 0;             // index of the result, or of the input
  Meta meta;
  std::string name;       // without `%`; "" until printing assigns a name
  std::vector<Use> uses;  // in no particular order

  // Inputs only.
  bool donated = false;     // the caller donates its storage
  bool param = false;       // bound once, when the model is loaded: a weight or a table
  std::string key;          // the checkpoint key of a param, "" when it has none
  bool overwrites = false;  // in pieces: the piece overwrites this input
};

enum class NodeKind : std::uint8_t { op, call, result };

// An origin says for readers where a node comes from, e.g. `layer=3`. Equality ignores it.
using Origin = std::vector<std::pair<std::string, std::string>>;

struct Node {
  NodeKind kind = NodeKind::op;
  std::string name;        // the op's name, or for a call the callee's
  const Op* op = nullptr;  // null for a call, for the result node, and for an op that this process does not know
  std::vector<GraphValue*> operands;  // schema order; null for an absent optional tensor
  Attributes attributes;              // complete and in schema order when `op` is known
  std::vector<std::unique_ptr<GraphValue>> results;
  Origin origin;
  bool maybe_inplace = false;   // stage traced
  std::string provider;         // the provider that computes the node; "" before stage lowered
  std::vector<int> writes;      // stage lowered: the operands that the kernel overwrites
  std::vector<int> results_in;  // result node of a piece: for each result the input whose storage holds it, or -1
  NodeList::iterator position;  // in its graph's list; the result node has none
  int line = 0;                 // in the text it was parsed from; 0 when not parsed
  CallSite site = {};  // where the typed op function that made it was called; line 0 when none did. For readers

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
  Bounds bounds;                               // the known bounds of each symbol
  std::vector<std::shared_ptr<Graph>> pieces;  // stage split: the definitions that `call` nodes refer to

  GraphValue* add_input(Meta meta, std::string name = "");
  const std::vector<std::unique_ptr<GraphValue>>& inputs() const { return inputs_; }
  // Removes an input that has no uses.
  void erase_input(GraphValue* input);

  const NodeList& nodes() const { return nodes_; }
  // Appends a node, or inserts it before `before`, and creates its results with these types.
  Node* add_node(std::unique_ptr<Node> node, std::vector<Meta> result_metas, const Node* before = nullptr);
  Node* add_op(const Op& op, std::vector<GraphValue*> operands, Attributes attributes, std::vector<Meta> result_metas,
               const Node* before = nullptr);
  // Moves a node before another one.
  void move_before(Node* node, const Node* before);
  // InternalError when a result still has uses.
  void erase(Node* node);

  // The node after all others. Its operands are the values that the graph returns.
  Node* result_node() const { return result_.get(); }
  const std::vector<GraphValue*>& results() const { return result_->operands; }
  void set_results(std::vector<GraphValue*> results);

  void set_operand(Node* node, std::size_t index, GraphValue* value);
  void replace_all_uses(GraphValue* from, GraphValue* to);

  std::shared_ptr<Graph> clone() const;
  // Moves the inputs, nodes, results and stage of `other` into this graph; `other` is left empty.
  void take_body(Graph& other);
  const Graph* find_piece(std::string_view piece_name) const;
  // The only symbol that dim 0 of a node's result may be, or be a multiple of: that of the first result that has one.
  // If none has, that of the first value that the graph returns, else of the first input that is no param; "" when none
  // has one. Dim 0 of an input that no node computes rows from may be another symbol. A piece may have multiples alone.
  std::string governing_symbol() const;

 private:
  std::vector<std::unique_ptr<GraphValue>> inputs_;
  NodeList nodes_;
  std::unique_ptr<Node> result_;
};

bool is_result(const GraphValue& value);  // whether the graph returns it

// The index of each node in the order of the list, from 0; the result node is last.
std::map<const Node*, int> node_positions(const Graph& graph);

}  // namespace weft
