#pragma once

// One product of tiles for each of the two vocabularies of kernels/cpu/lib/amx_tiles.h.

#include <cstdint>

namespace weft::cpu {

struct AmxTileCalls {
  // sums [rows][16] += a [rows][2 * steps] times b [steps][16][2], with rows and steps up to 16.
  void (*dot_bf16)(int rows, int steps, const std::uint16_t* a, const std::uint16_t* b, float* sums);
  // sums [rows][16] += a [rows][4 * steps] times b [steps][16][4].
  void (*dot_i8)(int rows, int steps, const std::int8_t* a, const std::int8_t* b, std::int32_t* sums);
};

extern const AmxTileCalls kAmxTileCallsInstructions;
extern const AmxTileCalls kAmxTileCallsEmulated;

}  // namespace weft::cpu
