#define WEFT_VECTORS "kernels/cpu/lib/vector_avx2.h"

#include "kernels/cpu/lib/linear_int8_skeleton.h"

namespace weft::cpu {

const LinearInt8Variant kLinearInt8Avx2 = kLinearInt8Variant;

}  // namespace weft::cpu
