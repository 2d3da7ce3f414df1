// clone_elimination: %c = clone(%x)  %y = f@cpu.inplace(&%c)   ->   %y = f@cpu.inplace(&%x)
//
// The pass keeps a copy only in these cases: the old value may still be read (by name, through an overlapping view, or
// by the caller); the graph does not own the storage (an input that was not donated); the copy has another layout; or
// the copy aligns a view for a kernel that reads whole vectors (passes/vector_places.h). A copy of KV pages that must
// stay is an error, because it would double the cache.

#include <algorithm>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/print.h"
#include "passes/all.h"
#include "passes/vector_places.h"

namespace weft {
namespace {

using Positions = std::map<const Node*, int>;

bool writes_operand(const Use& use) {
  return std::find(use.node->writes.begin(), use.node->writes.end(), use.operand) != use.node->writes.end();
}

// Returns the first node that writes to the value or a view of it; null when all uses are reads.
const Node* first_writer(GraphValue* value, const Positions& positions) {
  const Node* writer = nullptr;
  for (const GraphValue* alias : aliases(value))
    for (const Use& use : alias->uses)
      if (writes_operand(use) && (writer == nullptr || positions.at(use.node) < positions.at(writer)))
        writer = use.node;
  return writer;
}

// Whether anything but `clone` reads memory of `original` at `position` or later.
bool is_read_from(GraphValue* original, const Node* clone, int position, const Positions& positions) {
  const MemoryLocation location = location_of(original);
  for (const GraphValue* alias : aliases(storage_root(original))) {
    if (!may_overlap(location, location_of(alias))) continue;
    for (const Use& use : alias->uses)
      if (use.node != clone && positions.at(use.node) >= position) return true;
  }
  return false;
}

int last_use(GraphValue* value, const Positions& positions) {
  int last = -1;
  for (const GraphValue* alias : aliases(value))
    for (const Use& use : alias->uses) last = std::max(last, positions.at(use.node));
  return last;
}

bool is_returned(GraphValue* value) {
  const std::vector<GraphValue*> all = aliases(value);
  return std::any_of(all.begin(), all.end(), [](const GraphValue* alias) { return is_result(*alias); });
}

// Finds a kernel that reads the copy of a view, or a value written in place over the copy, and cannot read the
// misaligned view itself. Returns "the vectors of 16 bytes that <kernel> reads", or "" when there is none.
std::string vectors_around(Node* clone, const KernelRegistry& kernels) {
  std::vector<GraphValue*> there{clone->result()};
  for (std::size_t i = 0; i < there.size(); ++i)
    for (const GraphValue* alias : aliases(there[i]))
      for (const Use& use : alias->uses) {
        const Kernel* kernel = kernels.find(use.node->name, use.node->provider);
        if (kernel != nullptr && may_begin_between_vectors(*clone->operands[0], *kernel))
          return fmt::format("the vectors of {} bytes that {}@{} reads", kernel->vector_bytes, use.node->name,
                             use.node->provider);
        if (use.node->op == nullptr || !writes_operand(use)) continue;
        for (const Donation& donation : use.node->op->donates)
          if (donation.argument == static_cast<int>(use.operand))
            there.push_back(use.node->result(static_cast<std::size_t>(donation.result)));
      }
  return "";
}

// Returns why the copy must stay; "" when it may be removed.
std::string reason_to_keep(Node* clone, const Positions& positions, const KernelRegistry& kernels) {
  GraphValue* original = clone->operands[0];
  GraphValue* copy = clone->result();
  if (!(original->meta == copy->meta)) return "it changes the layout";
  if (const std::string vectors = vectors_around(clone, kernels); !vectors.empty())
    return fmt::format("%{} begins between {}", original->name, vectors);
  GraphValue* root = storage_root(original);
  const bool foreign = home_of(original)->producer == nullptr && !home_of(original)->donated;
  // If another copy of the same value was removed, its writer now overwrites the original.
  const Node* overwriter = first_writer(root, positions);
  if (overwriter != nullptr && last_use(copy, positions) >= positions.at(overwriter))
    return "%" + root->name + " is written over while it is needed";
  if (const Node* writer = first_writer(copy, positions)) {
    if (foreign) return "%" + root->name + " is an input that was not donated";
    if (is_read_from(original, clone, positions.at(writer), positions))
      return "the old value of %" + original->name + " may still be read";
    return "";
  }
  if (is_returned(copy) && foreign) return "it is returned, and %" + root->name + " was not donated";
  if (is_returned(copy) && is_returned(root)) return "both it and %" + root->name + " are returned";
  return "";
}

}  // namespace

PassResult clone_elimination(Graph& graph, PassContext& context) {
  const Positions positions = node_positions(graph);
  PassResult result;
  int removed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    if (!node->is("clone")) continue;
    const std::string reason = reason_to_keep(node, positions, context.kernels);
    if (!reason.empty()) {
      USER_CHECK(node->result()->meta.kind != MetaKind::kv,
                 "[{}] a copy of the KV pages %{} would have to stay, since {}", graph.name, node->operands[0]->name,
                 reason);
      result.kept_clones.emplace_back(node->result()->name, reason);
      continue;
    }
    graph.replace_all_uses(node->result(), node->operands[0]);
    graph.erase(node);
    ++removed;
  }
  result.counts = {{"removed", removed}, {"kept", static_cast<int>(result.kept_clones.size())}};
  return result;
}

}  // namespace weft
