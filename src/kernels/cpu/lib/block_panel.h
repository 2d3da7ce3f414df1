#pragma once

// Packs blocks into the records of a block panel (panel.h), and reads values back.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/lib/panel.h"
#include "tensor/dtype.h"

namespace weft::cpu {

// Writes rows [depth] of blocks as the first `columns` columns of a panel, at least one. What they do not fill must be
// zeros before.
void pack_blocks(PanelKind kind, DType dtype, const std::byte* const* rows, int columns, std::int64_t depth,
                 std::byte* panel);

// The values of 32 k of a column from k = 32 * group on, as dequantize_row gives them.
void read_group(PanelKind kind, DType dtype, const std::byte* panel, int column, std::int64_t group, float* values);

}  // namespace weft::cpu
