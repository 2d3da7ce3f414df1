// attention by the matrix units, for prompts. Which rows a call has decides who computes a row, and so its bits:
// --batch-invariant leaves it to provider cuda.

#include "kernels/cuda/lib/attention_kernel.h"

KERNELS(cuda_mma, attention) {
  weft::cuda::add_attention(registry, "cuda_mma", weft::cuda::AttentionDesign::matrix_units);
}
