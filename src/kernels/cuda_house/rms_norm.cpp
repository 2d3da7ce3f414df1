// rms_norm and fused_add_rms_norm, plain and followed by quantization, with reference math.

#include "kernels/cuda/lib/two_forms.h"

KERNELS(cuda_house, rms_norm) { weft::cuda::add_rms_norm(registry, weft::cuda::Mathematics::house); }
