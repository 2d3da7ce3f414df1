#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"

#include "tests/kernels/amx_tile_calls_skeleton.h"

namespace weft::cpu {

const AmxTileCalls kAmxTileCallsInstructions = kCalls;

}  // namespace weft::cpu
