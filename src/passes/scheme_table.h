#pragma once

// What the ops say of schemes of quantization: which op quantizes by one, and with which ops it is joined in one.

#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// An op that quantizes by a scheme, and the attributes with which it does.
struct SchemeRow {
  QuantKey key;
  const Op* quantizer = nullptr;
  NamedAttributes attributes;
};

class SchemeTable {
 public:
  explicit SchemeTable(const OpTable& ops);
  const std::vector<SchemeRow>& rows() const { return rows_; }
  // The first op that quantizes so; null when none does.
  const SchemeRow* find(const QuantKey& key) const;
  // The op that does what `front` and then the quantizer do, which is named after both; null when there is none.
  const Op* fused(const std::string& front, const SchemeRow& row) const;

 private:
  const OpTable& ops_;
  std::vector<SchemeRow> rows_;  // in the order of the ops' names
};

}  // namespace weft
