#include "apps/cli/dump_code.h"

#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "codegen/row_text.h"
#include "compiler/pieces.h"
#include "compiler/run/graph_program.h"
#include "tensor/vector_lanes.h"

namespace weft {
namespace {

struct FunctionCalls {
  RowProgram program;
  std::string graph;  // the first that calls it
  std::vector<std::string> nodes;
  int calls = 0;
};
struct RefusedNode {
  std::string graph, piece, node, reason;
};
struct Code {
  std::vector<FunctionCalls> functions;  // in the order of their first call
  std::vector<RefusedNode> refused;
};

std::map<std::string, int> calls_of_pieces(const Graph& split) {
  std::map<std::string, int> calls;
  for (const auto& call : split.nodes()) ++calls[call->name];
  return calls;
}

// Each line as a comment.
std::string commented(const std::string& text) {
  std::string commented = "// ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    commented += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) commented += "// ";
  }
  return commented;
}

Code code_of(const std::vector<std::shared_ptr<Graph>>& graphs, const Context& context) {
  Code code;
  std::map<std::string, std::size_t> known;  // by name of the function
  for (const auto& graph : graphs) {
    const auto calls = calls_of_pieces(*graph);
    PassContext passes = pass_context(context, token_range(*graph, context.options));
    const PieceSchedules schedules = schedule_pieces(*graph, passes, *context.threads);
    for (const auto& piece : graph->pieces) {
      const Schedule& schedule = schedules.at(piece->name).schedule;
      for (const RowRegion& region : schedule.regions) {
        const auto [found, is_new] = known.try_emplace(region.program.name(), code.functions.size());
        if (is_new) {
          code.functions.push_back({region.program, graph->name, {}, 0});
          for (const Node* node : region.nodes) code.functions.back().nodes.push_back(node->result()->name);
        }
        code.functions[found->second].calls += calls.at(piece->name);
      }
      for (const RowRefusal& refusal : schedule.refusals)
        code.refused.push_back({graph->name, piece->name, refusal.node->result()->name, refusal.reason});
    }
  }
  return code;
}

std::string code_json(const Code& code, int lanes) {
  Json functions = Json::array(), refused = Json::array();
  for (const FunctionCalls& function : code.functions)
    functions.push_back({{"name", function.program.name()},
                         {"graph", function.graph},
                         {"calls", function.calls},
                         {"nodes", function.nodes},
                         {"program", function.program.text()},
                         {"cpp", row_text(function.program, lanes)}});
  for (const RefusedNode& refusal : code.refused)
    refused.push_back(
        {{"graph", refusal.graph}, {"piece", refusal.piece}, {"node", refusal.node}, {"reason", refusal.reason}});
  return json_text(Json{{"functions", functions}, {"refused", refused}}, 2) + "\n";
}

std::string code_text(const Code& code, int lanes) {
  std::string text = row_text_prologue(lanes);
  for (const FunctionCalls& function : code.functions)
    text +=
        fmt::format("\n// {} calls from {}: {}\n{}{}", function.calls, function.graph, fmt::join(function.nodes, " "),
                    commented(function.program.text()), row_text(function.program, lanes));
  if (!code.refused.empty()) text += "\n// Native, but no function:\n";
  for (const RefusedNode& refusal : code.refused)
    text += fmt::format("//   {} of {} in {}: {}\n", refusal.node, refusal.piece, refusal.graph, refusal.reason);
  return text;
}

}  // namespace

void print_code(const std::vector<std::shared_ptr<Graph>>& graphs, const Context& context, bool as_json,
                std::ostream& out) {
  const Code code = code_of(graphs, context);
  const int lanes = vector_lanes(context.device.features);
  out << (as_json ? code_json(code, lanes) : code_text(code, lanes));
}

}  // namespace weft
