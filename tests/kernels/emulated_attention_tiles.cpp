#define WEFT_TILES "kernels/cpu/lib/amx_tiles_emulated.h"
#define WEFT_FLOAT_LANES 16
#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_baseline.h"

#include "kernels/cpu/lib/attention_tiles_skeleton.h"
#include "tests/kernels/emulated_rows.h"

namespace weft::cpu {

void attend_in_tiles_emulated(const AttentionTask& task) { attend_in_tiles(task); }

}  // namespace weft::cpu
