#include "ir/rank_groups.h"

#include "base/error.h"

namespace weft {

bool is_over_ranks(const Op& op) {
  return op.schema.parameter_index("world_size") >= 0 && op.schema.parameter_index("group_name") >= 0;
}

std::map<std::string, std::int64_t> rank_groups(const Graph& graph) {
  std::map<std::string, std::int64_t> groups;
  for (const auto& node : graph.nodes()) {
    if (node->op == nullptr || !is_over_ranks(*node->op)) continue;
    const std::int64_t size = node->attributes.at("world_size").integer();
    const std::string& name = node->attributes.at("group_name").string();
    if (size == 1) continue;
    const auto [known, is_new] = groups.emplace(name, size);
    USER_CHECK(is_new || known->second == size, "[{}] group {} has {} ranks elsewhere in the graph, but here {} (%{})",
               node->name, name, known->second, size, node->result()->name);
  }
  return groups;
}

}  // namespace weft
