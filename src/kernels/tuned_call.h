#pragma once

// A measured call: its types, attributes and token range. It ignores the row count, the strides and the packing of a
// weight. So a traced call, an eager call and a checkpoint's weight before packing match the same measurement.

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace weft {

struct TunedCall {
  std::vector<std::optional<Meta>> operands;  // schema order, as plain_meta returns them; the row count is s0
  Attributes attributes;                      // complete, in schema order
  TokenRange range;
  std::string reason = {};  // why a provider comes first: "tuned: 1.3x faster than cpu"

  bool holds_for(const KernelRequest& request) const;
  // Whether it is the same call in any range, comparing only operands that both have. For a weight, before its graph is
  // traced.
  bool is_about(const KernelRequest& request) const;
  // Whether a call at some row count would match both.
  bool overlaps(const TunedCall& other) const;
};

inline constexpr const char* kRowsSymbol = "s0";

// The meta without strides and packing.
Meta plain_meta(Meta meta);

}  // namespace weft
