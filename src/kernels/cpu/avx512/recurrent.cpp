#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx512.h"

#include "kernels/cpu/lib/recurrent_skeleton.h"

namespace weft::cpu {

const RecurrentKernels recurrent_kernels_avx512 = make_recurrent_kernels();

}  // namespace weft::cpu
