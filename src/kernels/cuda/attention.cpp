// attention with one order of operations for each row, independent of the other rows.

#include "kernels/cuda/lib/attention_kernel.h"

KERNELS(cuda, attention) { weft::cuda::add_attention(registry, "cuda", weft::cuda::AttentionDesign::multiply_adds); }
