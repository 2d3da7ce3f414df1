#pragma once

// The epilogue of a panel: bias, rounding and the store, for the skeletons.

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_variant.h"

namespace weft::cpu {
namespace {

// Whether sums may be written directly to the output.
WEFT_VECTOR bool is_plain(const PanelOutput& output) {
  return output.kind == FloatKind::f32 && output.columns == kPanelColumns && output.bias == nullptr;
}

WEFT_VECTOR float* plain_row(const PanelOutput& output, std::int64_t row) {
  return reinterpret_cast<float*>(output.data + row * output.row_stride);
}

WEFT_VECTOR void round_to(FloatKind kind, std::byte* to, Floats x) {
  if (kind == FloatKind::f32)
    store_floats(to, x);
  else if (kind == FloatKind::f16)
    store_halves(to, x);
  else
    store_bfloats(to, x);
}

// Stores sums [rows, 32] as rows of the output, from `first_row` on.
inline void store_rows(const float* sums, std::int64_t first_row, std::int64_t rows, const PanelOutput& output) {
  const int element = output.kind == FloatKind::f32 ? 4 : 2;
  std::byte part[kPanelColumns * 4];
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* row = output.data + (first_row + r) * output.row_stride;
    std::byte* to = output.columns == kPanelColumns ? row : part;
    for (int column = 0; column < kPanelColumns; column += kLanes) {
      Floats x = load_floats(sums + r * kPanelColumns + column);
      if (output.bias != nullptr) x = add(x, load_floats(output.bias + column));
      round_to(output.kind, to + column * element, x);
    }
    if (to == part) __builtin_memcpy(row, part, static_cast<unsigned long>(output.columns * element));
  }
}

}  // namespace
}  // namespace weft::cpu
