// attention in one order of operations a row, whatever stands beside it.

#include "kernels/cuda/lib/attention_kernel.h"

KERNELS(cuda, attention) { weft::cuda::add_attention(registry, "cuda", weft::cuda::AttentionDesign::multiply_adds); }
