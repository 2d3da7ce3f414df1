#pragma once

// Ceilings of instruction sets, as WEFT_CPU_FEATURES takes them, lowest first.

#include <string>
#include <vector>

#include "tensor/device.h"

namespace weft {

// All levels; one above the host's repeats its highest level.
inline std::vector<std::string> all_ceilings() { return {"baseline", "avx2", "avx512", "vnni", "bf16", "amx"}; }

// The levels that the host has.
inline std::vector<std::string> host_ceilings() {
  std::vector<std::string> ceilings = all_ceilings();
  ceilings.resize(static_cast<std::size_t>(describe_cpu("", 1).host) + 1);
  return ceilings;
}

}  // namespace weft
