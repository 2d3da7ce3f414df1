// silu_and_mul, plain and followed by quantization with a given scale or to f4e2m1, with reference math.

#include "kernels/cuda/lib/two_forms.h"

KERNELS(cuda_house, silu_and_mul) { weft::cuda::add_silu_and_mul(registry, weft::cuda::Mathematics::house); }
