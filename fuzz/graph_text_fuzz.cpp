// Any bytes are graphs and patterns that display prints and parse reads back to the same, or a UserError; the verifier
// gives a verdict on each.

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

template <class Parse>
void check_prints(const auto& definition, Parse&& parse) {
  const std::string text = display(definition), form = canonical(definition);
  if (display(*parse(text)) != text) std::abort();
  if (canonical(*parse(form)) != form) std::abort();
}

void check(const Graph& graph, const OpTable& ops) {
  find_breach(graph, ops);
  check_prints(graph, [&](const std::string& text) { return parse_graph(text, ops); });
}

void check(const Pattern& pattern, const OpTable& ops) {
  find_breach(pattern);
  check_prints(pattern, [&](const std::string& text) {
    return std::get<std::shared_ptr<Pattern>>(parse_definitions(text, ops, "again").at(0));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const OpTable ops = make_op_table();
  std::vector<Definition> definitions;
  try {
    definitions = parse_definitions(std::string_view(reinterpret_cast<const char*>(data), size), ops, "fuzz");
  } catch (const UserError&) {
    return 0;
  }
  for (const Definition& definition : definitions) std::visit([&](const auto& one) { check(*one, ops); }, definition);
  return 0;
}
