#include "report/reported_choices.h"

#include <map>

namespace weft {

ReportedChoices reported_choices(const CompileRecord& record) {
  ReportedChoices reported;
  std::map<std::string, const NodeChoice*> left;  // nodes that run and are not reported yet, by name
  bool is_split = false;                          // --compile-to may stop earlier: then nothing runs
  for (const PassRecord& pass : record.passes) {
    is_split = is_split || pass.name == "split";
    for (const NodeChoice& node : pass.result.runs) left.emplace(node.node, &node);
  }
  for (const PassRecord& pass : record.passes)
    for (const NodeChoice& node : pass.result.choices) {
      const auto run = left.find(node.node);
      if (node.is_written_out) {
        reported.written_out.push_back(node);
      } else if (!is_split) {
        reported.runs.push_back(node);
      } else if (run != left.end() && run->second->op == node.op) {
        reported.runs.push_back(node);
        left.erase(run);
      }
    }
  for (const PassRecord& pass : record.passes)
    for (const NodeChoice& node : pass.result.runs)
      if (left.contains(node.node)) reported.runs.push_back(node);
  return reported;
}

}  // namespace weft
