#pragma once

// Helpers of the linear family for its activations and results.

#include <optional>

#include <fmt/core.h>

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/kernel.h"

namespace weft::cpu {

inline Verdict runs_on_cpu(const DeviceDescription& device) {
  return device.id.type != DeviceType::cuda ? Verdict::yes() : Verdict::no("runs in the host's memory only");
}

inline std::optional<FloatKind> float_kind(DType dtype) {
  if (dtype == DType::f32) return FloatKind::f32;
  if (dtype == DType::f16) return FloatKind::f16;
  if (dtype == DType::bf16) return FloatKind::bf16;
  return std::nullopt;
}

inline std::int64_t float_bytes(FloatKind kind) { return kind == FloatKind::f32 ? 4 : 2; }

// Whether the elements of each row of a matrix are contiguous; the rows need not be adjacent.
inline bool has_contiguous_rows(const Meta& meta) {
  return meta.is_contiguous() || (meta.strides.back().is_number() && meta.strides.back().number() == 1);
}

inline Verdict result_verdict(const Meta& result) {
  if (!float_kind(result.dtype)) return Verdict::no(fmt::format("no rounding to {}", dtype_text(result.dtype)));
  return result.is_contiguous() ? Verdict::yes() : Verdict::no("the result is not contiguous");
}

// The output of panel `index` for the rows from `first_row` on. A result [..., columns] counts as a matrix.
inline PanelOutput panel_output(const TensorView& result, std::int64_t first_row, std::int64_t index,
                                const float* bias) {
  const FloatKind kind = *float_kind(result.dtype);
  const std::int64_t columns = result.size[result.rank - 1];
  const std::int64_t first_column = index * kPanelColumns;
  const std::int64_t row_stride = columns * float_bytes(kind);
  const std::int64_t rest = columns - first_column;
  return {result.data + first_row * row_stride + first_column * float_bytes(kind), row_stride, kind,
          static_cast<int>(rest < kPanelColumns ? rest : kPanelColumns), bias};
}

}  // namespace weft::cpu
