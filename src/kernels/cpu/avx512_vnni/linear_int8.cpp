#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/linear_int8_skeleton.h"

namespace weft::cpu {

const LinearInt8Variant kLinearInt8Avx512Vnni = kLinearInt8Variant;

}  // namespace weft::cpu
