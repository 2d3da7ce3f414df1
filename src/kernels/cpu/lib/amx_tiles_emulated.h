#pragma once

// The operations of amx_tiles.h in plain loops. With them, tests run kernels for tiles on any host.

#include <cstring>

#include "kernels/cpu/lib/amx_tiles.h"
#include "kernels/cpu/lib/flushed.h"
#include "tensor/bfloat16.h"

namespace weft::cpu {
namespace {

constexpr bool kEmulatesTiles = true;
constexpr int kEmulatedTiles = 8;

struct EmulatedTiles {
  TileShapes shapes;
  std::byte bytes[kEmulatedTiles][16][64];
};
inline thread_local EmulatedTiles emulated_tiles;

class TileScope {
 public:
  explicit TileScope(const TileShapes& shapes) {
    emulated_tiles = {};
    emulated_tiles.shapes = shapes;
  }
  // Tiles of no shape: later operations do nothing.
  ~TileScope() { emulated_tiles = {}; }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int tile>
void tile_zero() {
  std::memset(emulated_tiles.bytes[tile], 0, sizeof(emulated_tiles.bytes[tile]));
}
// As the instruction, it clears the bytes outside the shape.
template <int tile>
void tile_load(const void* from, std::int64_t stride) {
  tile_zero<tile>();
  for (int row = 0; row < emulated_tiles.shapes.rows[tile]; ++row)
    std::memcpy(emulated_tiles.bytes[tile][row], static_cast<const std::byte*>(from) + row * stride,
                emulated_tiles.shapes.row_bytes[tile]);
}
template <int tile>
void tile_stream(const void* from, std::int64_t stride) {
  tile_load<tile>(from, stride);
}
template <int tile>
void tile_store(void* to, std::int64_t stride) {
  for (int row = 0; row < emulated_tiles.shapes.rows[tile]; ++row)
    std::memcpy(static_cast<std::byte*>(to) + row * stride, emulated_tiles.bytes[tile][row],
                emulated_tiles.shapes.row_bytes[tile]);
}

template <class Element>
Element tile_element(int tile, int row, int index) {
  Element element;
  std::memcpy(&element, emulated_tiles.bytes[tile][row] + index * static_cast<int>(sizeof(Element)), sizeof(Element));
  return element;
}
// Replaces each element x of tile `sum` by add(x, row, column).
template <class Element, class Add>
void for_each_tile_sum(int sum, Add add) {
  const TileShapes& shapes = emulated_tiles.shapes;
  for (int row = 0; row < shapes.rows[sum]; ++row) {
    for (int column = 0; column < shapes.row_bytes[sum] / 4; ++column) {
      const Element total = add(tile_element<Element>(sum, row, column), row, column);
      std::memcpy(emulated_tiles.bytes[sum][row] + 4 * column, &total, 4);
    }
  }
}

template <int sum, int a, int b>
void tile_dot_bf16() {
  for_each_tile_sum<float>(sum, [](float total, int row, int column) {
    float chains[2] = {0, 0};
    for (int k = 0; k < emulated_tiles.shapes.rows[b]; ++k)
      for (int i = 0; i < 2; ++i)
        chains[i] = flushed_fma(bf16_to_f32(tile_element<std::uint16_t>(a, row, 2 * k + i)),
                                bf16_to_f32(tile_element<std::uint16_t>(b, k, 2 * column + i)), chains[i]);
    return flushed_sum(total, flushed_sum(chains[0], chains[1]));
  });
}
template <int sum, int a, int b>
void tile_dot_i8() {
  for_each_tile_sum<std::uint32_t>(sum, [](std::uint32_t total, int row, int column) {
    for (int k = 0; k < emulated_tiles.shapes.rows[b]; ++k)
      for (int i = 0; i < 4; ++i)
        total += static_cast<std::uint32_t>(tile_element<std::int8_t>(a, row, 4 * k + i) *
                                            tile_element<std::int8_t>(b, k, 4 * column + i));
    return total;
  });
}

}  // namespace
}  // namespace weft::cpu
