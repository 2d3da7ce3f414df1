// attention by the matrix units, for prompts. The kernel that computes a row, and so its bits, depends on the other
// rows of the call: --batch-invariant uses provider cuda.

#include "kernels/cuda/lib/attention_kernel.h"

KERNELS(cuda_mma, attention) {
  weft::cuda::add_attention(registry, "cuda_mma", weft::cuda::AttentionDesign::matrix_units);
}
