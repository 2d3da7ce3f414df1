#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"

#include "kernels/cpu/lib/scaled_tiles_skeleton.h"

namespace weft::cpu {

const ScaledTileKernels scaled_tile_kernels_amx = kScaledTiles;

}  // namespace weft::cpu
