#pragma once

// The lines of --why-not and of `weft graph match`.

#include <iosfwd>
#include <string>

#include "base/json.h"
#include "compiler/check/pattern_findings.h"

namespace weft {

// PATTERN or PATTERN@NODE, as both take it.
struct PatternQuestion {
  std::string option;   // for error messages
  std::string pattern;  // a pattern, a fusion, or an op that `raise` recovers; "" for all
  std::string node;     // "" for all nodes
};
PatternQuestion parse_pattern_question(const std::string& text, const std::string& option);

// Prints what was found in graph after graph. Without a node it prints matches and near misses, and counts the other
// attempts; with a node it prints every attempt from this node.
class PatternLines {
 public:
  PatternLines(const PatternQuestion& question, const Context& context, std::ostream& out);

  // `where` names the graph, and the rows where there are several ranges.
  void print(const std::string& where, const Graph& graph, TokenRange range);
  // The same as JSON: an array with one object for each pattern.
  Json json(const Graph& graph, TokenRange range);
  // UserError when no graph had the node.
  void check_node() const;

 private:
  // What was found of a pattern, or of an op that `raise` recovers.
  struct Named {
    std::string name;
    PatternFindings findings;
  };
  std::vector<Named> find(const Graph& graph, TokenRange range);

  PatternQuestion question_;
  const Context& context_;
  std::ostream& out_;
  std::vector<const Pattern*> patterns_;
  bool found_node_;
};

}  // namespace weft
