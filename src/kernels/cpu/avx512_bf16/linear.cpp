#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/bfloat_dots_skeleton.h"

namespace weft::cpu {

const BfloatVariant kBfloatAvx512Bf16 = kBfloatDots;

}  // namespace weft::cpu
