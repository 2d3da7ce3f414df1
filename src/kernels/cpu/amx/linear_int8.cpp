#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"
#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/int8_tiles_skeleton.h"

namespace weft::cpu {

const Int8TilePanel kInt8TilePanelAmx = int8_tiles_panel;

}  // namespace weft::cpu
