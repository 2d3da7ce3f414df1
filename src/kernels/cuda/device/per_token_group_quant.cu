// Quantization per group of 32, 64 or 128 columns, alone. The scheme is that of silu_and_mul_per_block_quant: 16
// elements a thread, groups in neighbouring lanes, no barrier. 3.03 bytes an element (bf16).

#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"

namespace weft::cuda {

template <class T, class Code, int group>
WEFT_DEVICE void per_token_group_quant(const PerTokenGroupQuantArguments& arguments) {
  constexpr int kElements = 16, kOfLoad = kElementsOfLoad<T>, kLoads = kElements / kOfLoad;
  constexpr int kLanes = group / kElements, kStep = kLanes * kOfLoad;
  const std::uint32_t columns = arguments.columns;
  const GroupPlace at = group_place<128, kLanes>(arguments.order, arguments.rows, columns / group);
  const std::uint64_t first = product(at.row, columns) + at.group * group + at.lane * kOfLoad;
  const T* x = static_cast<const T*>(arguments.x) + first;
  FourWords loaded[kLoads];
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) loaded[i] = load_once(x + i * kStep);
  const float bound = arguments.rule.bound == nullptr ? float_of(0x7f800000u) : load(arguments.rule.bound);

  float values[kElements];
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) unpack<T>(loaded[i], values + i * kOfLoad);
  const float largest = largest_of_lanes<kLanes, kElements>(values);
  const float scale = scale_of<Code>(largest, arguments.rule, bound);
  std::uint32_t words[kElements / 4];
  quantize<Code, kElements>(values, largest, scale, words);

  if (!at.is_live) return;
  auto* codes = static_cast<std::uint8_t*>(arguments.codes) + first;
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) store_words<kOfLoad / 4>(codes + i * kStep, words + i * (kOfLoad / 4));
  if (at.lane == 0) store(scale_at(arguments.places, at), scale);
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_KERNEL_OF(KERNEL, x, T, codes, Code, group) \
  KERNEL(per_token_group_quant_##x##_##codes##_##group, 128, weft::cuda::per_token_group_quant<T, Code, group>)
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
