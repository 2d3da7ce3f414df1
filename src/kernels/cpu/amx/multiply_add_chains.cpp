#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"

#include WEFT_TILES

#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu {
namespace {

// Six sums in tiles 0 to 5 hide the latency of a dot.
constexpr int kSums = 6, kA = 6, kB = 7;
constexpr std::int64_t kTileRows = 16, kTileBytes = 64;
constexpr std::int64_t kSumsOfTile = kTileRows * kTileBytes / 4;

template <typename Dots>
float run_tiles(std::int64_t turns, std::uint8_t value, Dots dots) {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) set_tile_shape(shapes, tile, kTileRows, kTileBytes);
  alignas(64) std::uint8_t bytes[kTileRows * kTileBytes];
  for (std::uint8_t& byte : bytes) byte = value;
  const TileScope scope(shapes);
  tile_load<kA>(bytes, kTileBytes);
  tile_load<kB>(bytes, kTileBytes);
  for (std::int64_t turn = 0; turn < turns; ++turn) dots();
  tile_store<0>(bytes, kTileBytes);
  return bytes[0];
}

float bfloat_chains(std::int64_t turns) {
  return run_tiles(
      turns, 0x3f, []() __attribute__((always_inline)) {
        tile_dot_bf16<0, kA, kB>();
        tile_dot_bf16<1, kA, kB>();
        tile_dot_bf16<2, kA, kB>();
        tile_dot_bf16<3, kA, kB>();
        tile_dot_bf16<4, kA, kB>();
        tile_dot_bf16<5, kA, kB>();
      });
}

float integer_chains(std::int64_t turns) {
  return run_tiles(
      turns, 1, []() __attribute__((always_inline)) {
        tile_dot_i8<0, kA, kB>();
        tile_dot_i8<1, kA, kB>();
        tile_dot_i8<2, kA, kB>();
        tile_dot_i8<3, kA, kB>();
        tile_dot_i8<4, kA, kB>();
        tile_dot_i8<5, kA, kB>();
      });
}

}  // namespace

const MultiplyAddChains kBfloatChainsAmx = {2 * kSums * kSumsOfTile * (kTileBytes / 2), bfloat_chains};
const MultiplyAddChains kIntegerChainsAmx = {2 * kSums * kSumsOfTile * kTileBytes, integer_chains};

}  // namespace weft::cpu
