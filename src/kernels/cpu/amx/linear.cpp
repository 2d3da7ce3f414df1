#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"
#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/bfloat_tiles_skeleton.h"

namespace weft::cpu {

const BfloatVariant kBfloatAmx = kBfloatTiles;
const RoundedVariant kRoundedAmx = kRoundedTiles;

}  // namespace weft::cpu
