#define WEFT_EMULATED_DOTS
#define WEFT_TILES "kernels/cpu/lib/amx_tiles_emulated.h"
#define WEFT_VECTORS "kernels/cpu/lib/vector_emulated.h"

#include "kernels/cpu/lib/bfloat_tiles_skeleton.h"
#include "kernels/cpu/lib/int8_tiles_skeleton.h"
#include "tests/kernels/emulated_linear.h"

namespace weft::cpu {

const BfloatVariant kBfloatEmulatedTiles = kBfloatTiles;
const RoundedVariant kRoundedEmulatedTiles = kRoundedTiles;
const Int8TilePanel kInt8TilePanelEmulated = int8_tiles_panel;

}  // namespace weft::cpu
