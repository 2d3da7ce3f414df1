#include "ir/replace_symbol.h"

namespace weft {

void replace_symbol(Graph& graph, const std::string& symbol, std::int64_t number) {
  const std::map<std::string, Dim> replacements{{symbol, Dim(number)}};
  const auto replace = [&](GraphValue& value) {
    for (Shape* dims : {&value.meta.shape, &value.meta.strides})
      for (Dim& dim : *dims) dim = dim.substitute(replacements);
    if (!value.meta.strides.empty()) value.meta = Meta::strided(value.meta.dtype, value.meta.shape, value.meta.strides);
  };
  for (const auto& input : graph.inputs()) replace(*input);
  for (const auto& node : graph.nodes()) {
    Attributes attributes;
    for (const auto& [name, value] : node->attributes.entries()) attributes.set(name, value.substitute(replacements));
    node->attributes = std::move(attributes);
    for (const auto& result : node->results) replace(*result);
  }
  graph.bounds.erase(symbol);
}

}  // namespace weft
