#pragma once

// The quantization schemes that ops declare: which op quantizes by a scheme, and which op fuses it with another op.

#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// An op that quantizes by a scheme, and the attributes that select the scheme.
struct SchemeRow {
  QuantKey key;
  const Op* quantizer = nullptr;
  NamedAttributes attributes;
};

class SchemeTable {
 public:
  explicit SchemeTable(const OpTable& ops);
  const std::vector<SchemeRow>& rows() const { return rows_; }
  // The first op that quantizes by this scheme; null when none does.
  const SchemeRow* find(const QuantKey& key) const;
  // The op that computes `front` and then the quantizer. Its name is both names joined by `_`; null when there is none.
  const Op* fused(const std::string& front, const SchemeRow& row) const;

 private:
  const OpTable& ops_;
  std::vector<SchemeRow> rows_;  // in the order of the ops' names
};

}  // namespace weft
