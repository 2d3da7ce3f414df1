#pragma once

// The operations of AMX: eight tiles of up to 16 rows of 64 bytes. Kernels are written with them once; WEFT_TILES names
// the header that has them: amx_tiles_instructions.h, or amx_tiles_emulated.h, which computes the same bits on any
// machine.
//
//   TileScope(shapes)             sets the shapes of all tiles and clears them; at the end of the scope there are none
//   tile_zero<t>()                clears tile t
//   tile_load<t>(p, stride)       rows that are `stride` bytes apart
//   tile_stream<t>(p, stride)     the same for bytes that are not read again soon: they do not displace others from L1
//   tile_store<t>(p, stride)
//   tile_dot_bf16<c, a, b>()      c [m][n] f32 += a [m][2k] bf16 times b [k][n][2] bf16, in the order below
//   tile_dot_i8<c, a, b>()        c [m][n] i32 += a [m][4k] i8 times b [k][n][4] i8, modulo 2^32
//
// The order of tile_dot_bf16, for an element c and up to 16 pairs k:
//
//   even = odd = +0
//   for each k: even = fma(a[2k], b[2k], even), odd = fma(a[2k + 1], b[2k + 1], odd)
//   c = c + (even + odd)
//
// Each operation rounds once to nearest even. Operands that are subnormal count as zeros of their sign, and results
// that are subnormal after rounding become such zeros.
//
// Tiles belong to a thread. A scope is inside one chunk of work, so that no tiles are in use where threads meet.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/lib/vector.h"

namespace weft::cpu {

// In the layout that the processor reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

WEFT_VECTOR void set_tile_shape(TileShapes& shapes, int tile, std::int64_t rows, std::int64_t row_bytes) {
  shapes.rows[tile] = static_cast<std::uint8_t>(rows);
  shapes.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
}

}  // namespace weft::cpu
