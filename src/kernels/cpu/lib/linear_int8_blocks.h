#pragma once

// linear_int8 on one panel for many rows: a block of the panel's k is unpacked to bytes and f32 scales, and all rows
// are multiplied by it while it is in the first cache. Unpacking then costs little however the codes are stored. The
// f32 sums of a row go to memory between blocks, which changes no bits. With VNNI 256 rows are multiplied 1.1 (4-bit
// codes) to 1.5 times (q5_K, q6_K) as fast as straight from the panel (Sapphire Rapids).

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_int8_group.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

// Fewer rows are multiplied faster straight from the panel, and so are codes that are bytes already.
constexpr std::int64_t kLeastRowsOfBlocks = 12;
template <PanelKind kind>
constexpr bool kGainsFromBlocks = block_panel(kind).code_bits < 8;
// A multiple of the depth of every record. An unpacked block takes 16 KB, and its scales and minimums up to 8.
constexpr std::int64_t kUnpackedDepth = 512;
constexpr std::int64_t kRowsOfSums = 512;  // their sums take 64 KB of the second cache
// A product waits for the one before it in its sum. 12 sums are enough to hide that, and fit into 32 registers.
constexpr int kBlockTileRows = kLanes == 16 ? 6 : 4;
constexpr int kBlockTileVectors = kPanelVectors < 2 ? kPanelVectors : 2;

// `groups` are 16 or 32 k.
struct UnpackedBlock {
  alignas(64) std::byte codes[kUnpackedDepth * kPanelColumns];  // [k / 4][32][4]
  float scales[kUnpackedDepth / 16][kPanelColumns];             // [group][32]
  float minimums[kUnpackedDepth / 16][kPanelColumns];
};

// Unpacks `depth` k, whole records, and fetches the bytes that the next block will unpack.
template <PanelKind kind>
__attribute__((noinline)) void unpack(const std::byte* record, std::int64_t depth, UnpackedBlock& to) {
  constexpr BlockPanel block = block_panel(kind);
  constexpr std::int64_t block_bytes = kUnpackedDepth / block.depth * record_bytes(block);
  const Codes codebook = load_codebook<kind>();
  for (std::int64_t k = 0; k < depth; k += block.depth, record += record_bytes(block)) {
    for (std::int64_t i = 0; i < record_bytes(block); i += 64) __builtin_prefetch(record + block_bytes + i, 0, 2);
    for (std::int64_t group = 0; group < block.depth / block.group; ++group) {
      const std::int64_t part = group * block.group / block.scale_depth, at = k / block.group + group;
      for (int n = 0; n < kPanelVectors; ++n) {
        const Scales scales = scales_of_group<kind>(record, group, n, record_scales<kind>(record, part, n));
        store_floats(to.scales[at] + n * kLanes, scales.scale);
        if constexpr (block.minimums) store_floats(to.minimums[at] + n * kLanes, scales.minimum);
      }
    }
    const std::byte* codes = record + code_offset(block);
    for (std::int64_t group = 0; group < block.depth; group += kGroupDepth, codes += group_code_bytes(block)) {
      std::byte* bytes = to.codes + (k + group) * kPanelColumns;
      WEFT_UNROLL for (int step = 0; step < kGroupDepth / 4; ++step) for (int n = 0; n < kPanelVectors; ++n)
          store_codes(bytes + step * kStepBytes + n * kVectorBytes, codes_of_step<kind>(codes, step, n, codebook));
    }
  }
}

// sums [rows, 32] += the products of a block of `depth` k. `x` is at the block's first k.
template <CodeForm form, int rows>
__attribute__((noinline)) void block_tile(const UnpackedBlock& block, std::int64_t depth, int first_vector, TileRows x,
                                          float* sums) {
  Floats f[rows][kBlockTileVectors];
  float* const first = sums + first_vector * kLanes;
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < kBlockTileVectors; ++n) f[r][n] =
      load_floats(first + r * kPanelColumns + n * kLanes);
  const std::byte* bytes = block.codes + first_vector * kVectorBytes;
  const float *scale = block.scales[0] + first_vector * kLanes, *minimum = block.minimums[0] + first_vector * kLanes;
  for (std::int64_t k = 0; k < depth; k += kGroupDepth) {
    const auto codes = [&](int step, int n) __attribute__((always_inline)) {
      return load_codes(bytes + step * kStepBytes + n * kVectorBytes);
    };
    const auto scales = [&](int n) __attribute__((always_inline)) {
      return Scales{load_floats(scale + n * kLanes), form.minimums ? load_floats(minimum + n * kLanes) : zero_floats()};
    };
    WEFT_UNROLL for (int g = 0; g < kGroupDepth / form.group; ++g) {
      add_group<form>(f, g, x, codes, scales);
      scale += kPanelColumns, minimum += kPanelColumns;
    }
    bytes += kGroupDepth * kPanelColumns;
    next_group_depth<form>(x);
  }
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < kBlockTileVectors; ++n)
      store_floats(first + r * kPanelColumns + n * kLanes, f[r][n]);
}

// All 32 columns for `row_count` rows, at most `rows`.
template <CodeForm form, int rows>
void block_tiles(int row_count, const UnpackedBlock& block, std::int64_t depth, const TileRows& x, float* sums) {
  if constexpr (rows > 1) {
    if (row_count < rows) return block_tiles<form, rows - 1>(row_count, block, depth, x, sums);
  }
  for (int n = 0; n < kPanelVectors; n += kBlockTileVectors) block_tile<form, rows>(block, depth, n, x, sums);
}

template <PanelKind kind>
void panel_by_blocks(const std::byte* panel, const Int8Rows& all, const PanelOutput& output) {
  constexpr CodeForm form = kCodeForm<kind>;
  float sums[kRowsOfSums * kPanelColumns];
  UnpackedBlock block;
  const std::int64_t whole_depth = all.groups * kGroupDepth;
  for (std::int64_t first = 0; first < all.rows; first += kRowsOfSums) {
    const std::int64_t rows = all.rows - first < kRowsOfSums ? all.rows - first : kRowsOfSums;
    __builtin_memset(sums, 0, static_cast<unsigned long>(rows) * kPanelColumns * sizeof(float));
    const std::byte* record = panel;
    for (std::int64_t k = 0; k < whole_depth; k += kUnpackedDepth) {
      const std::int64_t depth = whole_depth - k < kUnpackedDepth ? whole_depth - k : kUnpackedDepth;
      unpack<kind>(record, depth, block);
      record += kUnpackedDepth / block_panel(kind).depth * record_bytes(block_panel(kind));
      for (std::int64_t row = 0; row < rows; row += kBlockTileRows) {
        TileRows x = rows_from<form>(all, first + row);
        x.codes += k, x.scale += k / kGroupDepth, x.term += k / form.group * 4;
        const std::int64_t rest = rows - row;
        block_tiles<form, kBlockTileRows>(static_cast<int>(rest < kBlockTileRows ? rest : kBlockTileRows), block, depth,
                                          x, sums + row * kPanelColumns);
      }
    }
    store_rows(sums, first, rows, output);
  }
}

}  // namespace
}  // namespace weft::cpu
