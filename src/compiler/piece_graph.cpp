#include "compiler/piece_graph.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {

bool names_piece(const std::string& word, const std::string& graph, const std::string& piece) {
  return word == piece || "p" + word == piece || word == graph + "." + piece;
}

bool is_eager_piece(const CodeOptions& options, const std::string& graph, const std::string& piece) {
  return std::any_of(options.eager_piece.begin(), options.eager_piece.end(),
                     [&](const std::string& word) { return names_piece(word, graph, piece); });
}

void check_piece_names(const std::string& option, const Words& words, std::span<const CompileRecord> records) {
  std::vector<std::string> names;
  if (words.empty()) return;
  for (const CompileRecord& record : records)
    for (const auto& piece : record.split->pieces) names.push_back(record.graph + "." + piece->name);
  for (const std::string& word : words) {
    const bool is_known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const std::size_t dot = name.rfind('.');
      return names_piece(word, name.substr(0, dot), name.substr(dot + 1));
    });
    USER_CHECK(is_known, "[{}] {} names no piece; there are {}", option, quote(word), fmt::join(names, ", "));
  }
}

const Node* first_call(const Graph& split, const std::string& piece) {
  for (const auto& call : split.nodes())
    if (call->name == piece) return call.get();
  return nullptr;
}

std::shared_ptr<Graph> standalone_piece(const Graph& split, const Node& call) {
  const Graph* piece = split.find_piece(call.name);
  CHECK(piece != nullptr, "there is no piece named {}", call.name);
  std::shared_ptr<Graph> graph = piece->clone();
  graph->kind = DefinitionKind::graph;
  graph->name = piece->name;
  graph->result_node()->results_in.clear();
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    GraphValue& input = *graph->inputs()[i];
    input.param = call.operands[i]->param;
    input.key = call.operands[i]->key;
    input.donated = input.overwrites;
    input.overwrites = false;
  }
  return graph;
}

}  // namespace weft
