// Quantization per group of 32, 64 or 128 columns, as a separate op. It works as silu_and_mul_per_block_quant: 16
// elements a thread, groups in neighbouring lanes, no barrier. 3.03 bytes an element (bf16).

#include "kernels/cuda/device/lane_group.cuh"

namespace weft::cuda {

template <class T, class Code, int group>
WEFT_DEVICE void per_token_group_quant(const PerTokenGroupQuantArguments& arguments) {
  using Lane = LaneOfGroup<T, group>;
  const Lane lane = lane_of_group<T, group>(arguments);
  const T* x = static_cast<const T*>(arguments.x) + lane.place;
  FourWords loaded[Lane::kLoads];
  WEFT_UNROLL
  for (int i = 0; i < Lane::kLoads; ++i) loaded[i] = load_once(x + i * Lane::kStep);
  const float bound = bound_of(arguments.rule);

  float values[Lane::kElements];
  WEFT_UNROLL
  for (int i = 0; i < Lane::kLoads; ++i) unpack<T>(loaded[i], values + i * Lane::kOfLoad);
  store_group<Code>(arguments, lane, bound, values);
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_KERNEL_OF(KERNEL, x, T, codes, Code, group) \
  KERNEL(per_token_group_quant_##x##_##codes##_##group, kGroupThreads, weft::cuda::per_token_group_quant<T, Code, group>)
#define WEFT_GROUPS(KERNEL, x, T, codes, Code) \
  WEFT_KERNEL_OF(KERNEL, x, T, codes, Code, 32) \
  WEFT_KERNEL_OF(KERNEL, x, T, codes, Code, 64) \
  WEFT_KERNEL_OF(KERNEL, x, T, codes, Code, 128)
#define WEFT_CODES(KERNEL, x, T) \
  WEFT_GROUPS(KERNEL, x, T, f8e4m3, Fp8) \
  WEFT_GROUPS(KERNEL, x, T, i8, Int8) \
  WEFT_GROUPS(KERNEL, x, T, i8_truncated, TruncatedInt8)
#define WEFT_LIST(KERNEL) WEFT_CODES(KERNEL, bf16, Brain) WEFT_CODES(KERNEL, f16, Half) WEFT_CODES(KERNEL, f32, float)
// clang-format on
WEFT_CUDA_KERNELS(per_token_group_quant, PerTokenGroupQuantArguments, WEFT_LIST)
