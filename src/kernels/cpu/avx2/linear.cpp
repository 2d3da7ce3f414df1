#define WEFT_VECTORS "kernels/cpu/lib/vector_avx2.h"

#include "kernels/cpu/lib/linear_skeleton.h"

namespace weft::cpu {

const LinearVariant kLinearAvx2 = kLinearVariant;

}  // namespace weft::cpu
