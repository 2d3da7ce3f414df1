#pragma once

// The quantization schemes that ops declare: which op quantizes by a scheme, and which op fuses it with another op.

#include <optional>
#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// How the quantizer of a dynamic scheme computes scales and codes, with all values of its attributes. A quantization
// that is written out in primitives is compared with these facts.
struct QuantSteps {
  double limit = 0;                        // scale = largest magnitude / limit
  double min_code = 0, max_code = 0;       // x / scale is clamped to these
  bool may_multiply_scale = false;         // scale = largest magnitude * (1 / limit) is possible, too
  bool divides_codes = true;               // x / scale is possible
  bool may_multiply_codes = false;         // x * (1 / scale) is possible, too
  bool may_bound_scale = true;             // scales may have a floor
  bool may_limit_scale = false;            // scales may have an upper bound, in a tensor
  bool may_be_power_of_two = false;        // scales may be rounded up to powers of two
  bool replaces_nan = false;               // a NaN has magnitude 0
  std::vector<std::string> rounding = {};  // ops that round x / scale before the cast; empty if the cast alone rounds
};

// An op that quantizes by a scheme, and the attributes that select the scheme.
struct SchemeRow {
  QuantKey key;
  const Op* quantizer = nullptr;
  NamedAttributes attributes;
  std::optional<QuantSteps> steps = {};  // of schemes with one dynamic scale for each token, or for groups of a token
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
