#include "plugin/text_pass.h"

#include "base/error.h"
#include "ir/parse.h"
#include "ir/verify.h"

namespace weft {
namespace {

void check_callers_view(const Graph& before, const Graph& after, const std::string& who) {
  USER_CHECK(after.stage == before.stage, "{} must leave stage {}, but leaves {}", who, stage_text(before.stage),
             stage_text(after.stage));
  USER_CHECK(after.bounds == before.bounds && after.device == before.device,
             "{} must keep the device and the bounds of the symbols", who);
  USER_CHECK(after.inputs().size() == before.inputs().size(), "{} must keep the {} inputs, but leaves {}", who,
             before.inputs().size(), after.inputs().size());
  for (std::size_t i = 0; i < after.inputs().size(); ++i) {
    const GraphValue &was = *before.inputs()[i], &is = *after.inputs()[i];
    USER_CHECK(is.name == was.name && is.meta == was.meta && is.param == was.param && is.key == was.key,
               "{} must keep the inputs, but changes %{}: {} to %{}: {}", who, was.name, was.meta.text(), is.name,
               is.meta.text());
    USER_CHECK(is.donated == was.donated, "{} must not change who owns input %{}", who, was.name);
  }
  USER_CHECK(after.results().size() == before.results().size(), "{} must keep the {} results, but leaves {}", who,
             before.results().size(), after.results().size());
  for (std::size_t i = 0; i < after.results().size(); ++i) {
    const Meta &was = before.results()[i]->meta, &is = after.results()[i]->meta;
    USER_CHECK(is == was, "{} must keep the types of the results, but makes result {} {} instead of {}", who, i,
               is.text(), was.text());
  }
}

}  // namespace

void replace_by_text(Graph& graph, const std::string& text, const OpTable& ops, const std::string& who) {
  const std::shared_ptr<Graph> changed = parse_graph(text, ops, who);
  verify_text(*changed, ops, who);
  check_callers_view(graph, *changed, who);
  graph.pieces = changed->pieces;
  graph.take_body(*changed);
}

}  // namespace weft
