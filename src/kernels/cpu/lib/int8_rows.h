#pragma once

// Rows of codes with scales, as linear_int8 and grouped_linear_int8 read them on the CPU, and the terms of their
// groups.

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/kernel.h"
#include "tensor/device.h"

namespace weft::cpu {

// Rows of one chunk. Blocks of 32 to 512 rows are equally fast (Zen 3); the largest reads each panel least often.
constexpr std::int64_t kInt8RowLimit = 512;

LinearInt8Variant linear_int8_variant(CpuFeatures features);

// Whether the kernels read codes and scales of these types, and multiply codes of a weight of this type.
Verdict int8_rows_verdict(const Meta& codes, const Meta& scale, DType weight);

// Bytes of the terms of one row.
std::int64_t row_term_bytes(PanelKind kind, std::int64_t depth);

// Writes the terms of all groups of a weight of this kind, which its zero points need, and returns the rows with them.
Int8Rows rows_with_terms(const LinearInt8Variant& variant, const TensorView& codes, const TensorView& scale,
                         PanelKind kind, std::byte* terms, ThreadPool& threads);

// Whether this many rows are multiplied by tiles. Fewer are faster without.
bool multiplies_tiles(const LinearInt8Variant& variant, PanelKind kind, std::int64_t rows);

// Bytes of the terms of `rows` rows, or of their scales and terms for tiles, whichever is more. Whole cache lines.
Dim term_scratch_bytes(PanelKind kind, std::int64_t depth, const Dim& rows);

// Writes the scales of rows for tiles, and the terms for kinds with minimums.
Int8TileRows rows_for_tiles(const TensorView& codes, const TensorView& scale, PanelKind kind, std::byte* to,
                            ThreadPool& threads);

// `count` of the rows, from `first` on; for tiles, `first` is a multiple of 16.
Int8TileRows part_of(Int8TileRows all, std::int64_t first, std::int64_t count);
Int8Rows part_of(Int8Rows all, PanelKind kind, std::int64_t first, std::int64_t count);

}  // namespace weft::cpu
