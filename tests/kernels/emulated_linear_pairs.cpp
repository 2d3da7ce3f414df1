#define WEFT_VECTORS "kernels/cpu/lib/vector_emulated.h"

#include "kernels/cpu/lib/linear_int8_skeleton.h"
#include "kernels/cpu/lib/linear_skeleton.h"
#include "tests/kernels/emulated_linear.h"

namespace weft::cpu {

const LinearInt8Variant kLinearInt8EmulatedPairs = kLinearInt8Variant;
const LinearVariant kLinearEmulatedPairs = kLinearVariant;

}  // namespace weft::cpu
