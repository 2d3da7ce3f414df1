#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/linear_skeleton.h"

namespace weft::cpu {

const LinearVariant kLinearAvx512 = kLinearVariant;

}  // namespace weft::cpu
