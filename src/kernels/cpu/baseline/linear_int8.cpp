#define WEFT_VECTORS "kernels/cpu/lib/vector_baseline.h"

#include "kernels/cpu/lib/linear_int8_skeleton.h"

namespace weft::cpu {

const LinearInt8Variant kLinearInt8Baseline = kLinearInt8Variant;

}  // namespace weft::cpu
