#include "passes/scheme_table.h"

#include <algorithm>

namespace weft {

SchemeTable::SchemeTable(const OpTable& ops) : ops_(ops) {
  for (const auto& [name, op] : ops.all())
    for (const QuantScheme& scheme : op.schemes) rows_.push_back({scheme.key, &op, scheme.attributes});
}

const SchemeRow* SchemeTable::find(const QuantKey& key) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const SchemeRow& one) { return one.key == key; });
  return row == rows_.end() ? nullptr : &*row;
}

const Op* SchemeTable::fused(const std::string& front, const SchemeRow& row) const {
  return ops_.find(front + "_" + row.quantizer->name);
}

}  // namespace weft
