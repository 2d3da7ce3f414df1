#pragma once

// A call that was measured: its types, attributes and token range, whatever the count of rows, the strides and the
// packing of a weight. So a traced call, an eager one and a checkpoint's weight before it is packed are one and the
// same.

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace weft {

struct TunedCall {
  std::vector<std::optional<Meta>> operands;  // schema order, as plain_meta gives them; the count of rows is s0
  Attributes attributes;                      // complete, in schema order
  TokenRange range;
  std::string reason = {};  // why a provider comes first: "tuned: 1.3x faster than cpu"

  bool holds_for(const KernelRequest& request) const;
  // The same call in any range, as far as both have the operand: for a weight, before its graph is traced.
  bool is_about(const KernelRequest& request) const;
  // Whether, at some count of rows in the range, the two cannot be told apart.
  bool overlaps(const TunedCall& other) const;
};

inline constexpr const char* kRowsSymbol = "s0";

// Without strides and packing.
Meta plain_meta(Meta meta);

}  // namespace weft
