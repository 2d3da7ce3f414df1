#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_baseline.h"

#include "kernels/cpu/lib/quantised_rows_skeleton.h"

namespace weft::cpu {

const QuantisedRowKernels quantised_row_kernels_baseline = make_quantised_row_kernels();

}  // namespace weft::cpu
