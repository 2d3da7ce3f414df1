#include "apps/cli/dump_code.h"

#include <map>

#include <fmt/core.h>

#include "base/json.h"
#include "codegen/row_text.h"
#include "compiler/pieces.h"

namespace weft {
namespace {

struct FunctionCalls {
  RowProgram program;
  std::string graph;  // the first that calls it
  std::vector<std::string> nodes;
  int calls = 0;
};

std::map<std::string, int> calls_of_pieces(const Graph& split) {
  std::map<std::string, int> calls;
  for (const auto& call : split.nodes()) ++calls[call->name];
  return calls;
}

std::string words(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& word : list) text += " " + word;
  return text;
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

}  // namespace

void print_code(const std::vector<std::shared_ptr<Graph>>& graphs, const Context& context, bool as_json,
                std::ostream& out) {
  std::vector<FunctionCalls> functions;  // in the order of their first call
  std::map<std::string, std::size_t> known;
  Json refused = Json::array();
  for (const auto& graph : graphs) {
    const auto calls = calls_of_pieces(*graph);
    const PieceSchedules schedules = schedule_pieces(*graph);
    for (const auto& piece : graph->pieces) {
      const Schedule& schedule = schedules.at(piece->name);
      for (const RowRegion& region : schedule.regions) {
        const auto [found, is_new] = known.try_emplace(region.program.name(), functions.size());
        if (is_new) {
          functions.push_back({region.program, graph->name, {}, 0});
          for (const Node* node : region.nodes) functions.back().nodes.push_back(node->result()->name);
        }
        functions[found->second].calls += calls.at(piece->name);
      }
      for (const RowRefusal& refusal : schedule.refusals)
        refused.push_back(
            {{"graph", graph->name}, {"piece", piece->name}, {"node", refusal.node}, {"reason", refusal.reason}});
    }
  }
  const int lanes = row_lanes(context.device.features);
  Json list = Json::array();
  if (!as_json) out << row_text_prologue(lanes);
  for (const FunctionCalls& function : functions) {
    const std::string cpp = row_text(function.program, lanes);
    list.push_back({{"name", function.program.name()},
                    {"graph", function.graph},
                    {"calls", function.calls},
                    {"nodes", function.nodes},
                    {"program", function.program.text()},
                    {"cpp", cpp}});
    if (!as_json)
      out << fmt::format("\n// {} calls from {}:{}\n{}{}", function.calls, function.graph, words(function.nodes),
                         commented(function.program.text()), cpp);
  }
  if (as_json) {
    out << json_text(Json{{"functions", list}, {"refused", refused}}, 2) << "\n";
    return;
  }
  if (!refused.empty()) out << "\n// Native, but no function:\n";
  for (const Json& refusal : refused)
    out << fmt::format("//   {} of {} in {}: {}\n", refusal["node"].get<std::string>(),
                       refusal["piece"].get<std::string>(), refusal["graph"].get<std::string>(),
                       refusal["reason"].get<std::string>());
}

}  // namespace weft
