// functionalize: %o, %r = fused_add_rms_norm.maybe_inplace(%x, %residual, ...)  ->  fused_add_rms_norm(...)
//
// After this pass every op makes new values, and inputs that the author donated are recorded as such. A later use of a
// donated value is a user error (ir/donation.h).

#include "base/error.h"
#include "ir/alias.h"
#include "ir/donation.h"
#include "ir/print.h"
#include "passes/all.h"

namespace weft {
PassResult functionalize(Graph& graph, PassContext&) {
  assign_names(graph);
  check_donations(graph);
  int functionalized = 0, donated_inputs = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->maybe_inplace) continue;
    CHECK(node->op != nullptr && node->op->allow_inplace, "{} has no maybe_inplace form", node->name);
    for (const Donation& donation : node->op->donates) {
      GraphValue* given = node->operands[static_cast<std::size_t>(donation.argument)];
      GraphValue* root = given == nullptr ? nullptr : storage_root(given);
      if (root == nullptr || root->producer != nullptr) continue;
      donated_inputs += root->donated ? 0 : 1;
      root->donated = true;
    }
    node->maybe_inplace = false;
    ++functionalized;
  }
  graph.stage = Stage::pure;
  return {.counts = {{"functionalized", functionalized}, {"donated inputs", donated_inputs}}};
}

}  // namespace weft
