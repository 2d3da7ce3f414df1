#pragma once

// Which level of a row program has time to spare for memory.

#include <algorithm>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// The level whose loop over the columns computes most, of a finished program; the last of several.
inline int heaviest_level(const RowProgram& program) {
  std::vector<int> costs(static_cast<std::size_t>(program.levels), 0);
  for (const RowValue& value : program.values) {
    if (value.domain != RowDomain::element) continue;
    int& cost = costs[static_cast<std::size_t>(value.level)];
    cost += value.cost;
    for (const int operand : {value.a, value.b, value.c})
      if (operand >= 0) cost -= program.values[static_cast<std::size_t>(operand)].cost;
  }
  return static_cast<int>(costs.rend() - std::max_element(costs.rbegin(), costs.rend())) - 1;
}

}  // namespace weft
