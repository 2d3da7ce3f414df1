#pragma once

// The linear family's skeletons over kernels/cpu/lib/vector_emulated.h: as for AVX-512 without VNNI and BF16 (pairs)
// and with them (dots). Also products of bf16 and of i8 with emulated tiles.

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/scaled_linear_kernels.h"

namespace weft::cpu {

extern const LinearInt8Variant kLinearInt8EmulatedPairs;
extern const LinearInt8Variant kLinearInt8EmulatedDots;
extern const LinearVariant kLinearEmulatedPairs;
extern const LinearVariant kLinearEmulatedDots;
extern const BfloatVariant kBfloatEmulatedTiles;
extern const RoundedVariant kRoundedEmulatedTiles;
extern const Int8TilePanel kInt8TilePanelEmulated;
extern const ScaledTileKernels kScaledTilesEmulated;

}  // namespace weft::cpu
