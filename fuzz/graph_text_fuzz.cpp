// Any bytes are graphs that display prints and parse reads back to the same, or a UserError; the verifier gives a
// verdict on each.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace {

using namespace weft;

void check_prints(const Graph& graph, const OpTable& ops) {
  const std::string text = display(graph), form = canonical(graph);
  if (display(*parse_graph(text, ops)) != text) std::abort();
  if (canonical(*parse_graph(form, ops)) != form) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const OpTable ops = make_op_table();
  std::vector<std::shared_ptr<Graph>> graphs;
  try {
    graphs = parse_graphs(std::string_view(reinterpret_cast<const char*>(data), size), ops, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  for (const auto& graph : graphs) {
    find_breach(*graph, ops);
    check_prints(*graph, ops);
  }
  return 0;
}
