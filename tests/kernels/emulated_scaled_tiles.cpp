#define WEFT_TILES "kernels/cpu/lib/amx_tiles_emulated.h"

#include "kernels/cpu/lib/scaled_tiles_skeleton.h"
#include "tests/kernels/emulated_linear.h"

namespace weft::cpu {

const ScaledTileKernels kScaledTilesEmulated = kScaledTiles;

}  // namespace weft::cpu
