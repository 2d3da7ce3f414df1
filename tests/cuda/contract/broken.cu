// Kernels that break the contract in broken.json, each in its own ways: tools/check_cuda.py must report every breach.

#include "kernels/cuda/device/memory.cuh"

namespace weft::cuda {

struct BrokenArguments {
  const float* x;
  float* y;
  int count;
};

// An array that is indexed by a run-time value is in local memory.
WEFT_DEVICE void local_memory(const BrokenArguments& arguments) {
  float kept[64];
  for (int i = 0; i < 64; ++i) kept[i] = load(arguments.x + i);
  for (int i = 0; i < arguments.count; ++i) kept[i % 64] = kept[i * 7 % 64] + 1.0f;
  store(arguments.y, kept[arguments.count % 64]);
}

WEFT_DEVICE void narrow_access(const BrokenArguments& arguments) {
  for (int i = 0; i < 4; ++i) store(arguments.y + i, load(arguments.x + i));
}

WEFT_DEVICE void slow_division(const BrokenArguments& arguments) {
  float x = load(arguments.x);
  for (int i = 1; i <= 16; ++i) x = 1.0f / x + load(arguments.x + i);
  store(arguments.y, x);
}

}  // namespace weft::cuda

#define WEFT_LIST(KERNEL)                                     \
  KERNEL(local_memory_kernel, 32, weft::cuda::local_memory)   \
  KERNEL(narrow_access_kernel, 32, weft::cuda::narrow_access) \
  KERNEL(slow_division_kernel, 32, weft::cuda::slow_division)
WEFT_CUDA_KERNELS(broken, BrokenArguments, WEFT_LIST)
