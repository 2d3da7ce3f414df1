#define WEFT_TILES "kernels/cpu/lib/amx_tiles_emulated.h"

#include "tests/kernels/amx_tile_calls_skeleton.h"

namespace weft::cpu {

const AmxTileCalls kAmxTileCallsEmulated = kCalls;

}  // namespace weft::cpu
