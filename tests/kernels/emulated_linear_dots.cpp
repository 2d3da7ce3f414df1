#define WEFT_EMULATED_DOTS
#define WEFT_VECTORS "kernels/cpu/lib/vector_emulated.h"

#include "kernels/cpu/lib/bfloat_dots_skeleton.h"
#include "kernels/cpu/lib/linear_int8_skeleton.h"
#include "kernels/cpu/lib/linear_skeleton.h"
#include "tests/kernels/emulated_linear.h"

namespace weft::cpu {

const LinearInt8Variant kLinearInt8EmulatedDots = kLinearInt8Variant;
const LinearVariant kLinearEmulatedDots = {linear_panel, widen,           kBfloatDots,
                                           {nullptr, 0}, kRoundedOrdered, {nullptr, 0}};

}  // namespace weft::cpu
