#define WEFT_VECTORS "kernels/cpu/lib/vector_baseline.h"

#include "kernels/cpu/lib/linear_skeleton.h"

namespace weft::cpu {

const LinearVariant kLinearBaseline = kLinearVariant;

}  // namespace weft::cpu
