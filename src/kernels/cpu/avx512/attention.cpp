#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx512.h"

#include "kernels/cpu/lib/attention_skeleton.h"

namespace weft::cpu {

const AttentionKernels attention_kernels_avx512 = make_attention_kernels();

}  // namespace weft::cpu
