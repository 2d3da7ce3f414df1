#define WEFT_TILES "kernels/cpu/lib/amx_tiles_instructions.h"
#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx512.h"

#include "kernels/cpu/lib/attention_tiles_skeleton.h"

namespace weft::cpu {

void attend_in_tiles_amx(const AttentionTask& task) { attend_in_tiles(task); }

}  // namespace weft::cpu
