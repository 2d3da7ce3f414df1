// silu_and_mul, plain and followed by quantization by a given scale or to f4e2m1, by house mathematics.

#include "kernels/cuda/lib/two_forms.h"

KERNELS(cuda_house, silu_and_mul) { weft::cuda::add_silu_and_mul(registry, weft::cuda::Mathematics::house); }
