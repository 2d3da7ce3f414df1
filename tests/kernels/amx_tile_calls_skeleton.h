#pragma once

// The calls of amx_tile_calls.h with the operations of WEFT_TILES.

#include WEFT_TILES

#include "tests/kernels/amx_tile_calls.h"

namespace weft::cpu {
namespace {

TileShapes shapes_of_product(int rows, int steps) {
  TileShapes shapes;
  set_tile_shape(shapes, 1, rows, 64);
  set_tile_shape(shapes, 2, rows, 4 * steps);
  set_tile_shape(shapes, 7, steps, 64);
  return shapes;
}

void dot_bf16(int rows, int steps, const std::uint16_t* a, const std::uint16_t* b, float* sums) {
  const TileShapes shapes = shapes_of_product(rows, steps);
  const TileScope scope(shapes);
  tile_load<1>(sums, 64);
  tile_stream<2>(a, 4 * steps);
  tile_load<7>(b, 64);
  tile_dot_bf16<1, 2, 7>();
  tile_store<1>(sums, 64);
}

void dot_i8(int rows, int steps, const std::int8_t* a, const std::int8_t* b, std::int32_t* sums) {
  const TileShapes shapes = shapes_of_product(rows, steps);
  const TileScope scope(shapes);
  tile_load<1>(sums, 64);
  tile_load<2>(a, 4 * steps);
  tile_load<7>(b, 64);
  tile_dot_i8<1, 2, 7>();
  tile_store<1>(sums, 64);
}

constexpr AmxTileCalls kCalls = {dot_bf16, dot_i8};

}  // namespace
}  // namespace weft::cpu
