#pragma once

// Random graphs, with all shapes that passes and printers must distinguish: views (also strided ones), values that
// several nodes read, several results, equal nodes and unread ones, calls that donate their arguments (whole or by
// halves), weights, inputs that are donated at the start.
//
// A GraphRecipe is a list of small numbers; build_graph interprets any such list as a legal graph of stage traced. So
// code that draws or shrinks numbers draws and shrinks graphs (tests/graph_recipes.h does, with RapidCheck).

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace weft {

// Each number counts modulo the choices there are.
struct NodeRecipe {
  int op = 0;
  int first = 0;  // operands, among the values there are
  int second = 0;
  int detail = 0;  // attributes, names, origins
};

struct GraphRecipe {
  int inputs = 0;   // how many in addition to one, and their names
  int donated = 0;  // bit i: input i is donated
  std::vector<NodeRecipe> nodes;
  std::vector<int> results;  // in addition to one
};

// Rows of f32[s0, 64] and a weight f32[64], then i64[s0] positions and a table if a node needs them. Legal at stage
// traced, and functionalize accepts it.
std::shared_ptr<Graph> build_graph(const GraphRecipe& recipe, const OpTable& ops);

// Counts of the features of a graph.
struct GraphFeatures {
  int views = 0;
  int strided_views = 0;
  int shared_values = 0;    // read by several nodes
  int several_results = 0;  // nodes that give several
  int returned = 0;         // results of the graph beyond the first
  int given_away = 0;       // calls with .maybe_inplace, or that write over arguments
  int donated_inputs = 0;
  int params = 0;
  int absent_operands = 0;
  int repeated_nodes = 0;
  int unread_nodes = 0;
  int calls = 0;  // of pieces

  GraphFeatures& operator+=(const GraphFeatures& other);
  std::string text() const;  // views 12, strided views 3, ...
};
GraphFeatures features_of(const Graph& graph);

// "" if the graph obeys the laws of its text, else the law that it breaks: parse(display(g)) == g; display gives that
// text again; canonical(parse(canonical(g))) == canonical(g); a clone prints the same; equal graphs have equal hashes.
std::string broken_text_law(const Graph& graph, const OpTable& ops);

// For messages: the graph as text.
void showValue(const GraphRecipe& recipe, std::ostream& out);

}  // namespace weft
