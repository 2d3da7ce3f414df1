// The fast design of silu_and_mul_per_block_quant.h.

#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/silu.cuh"

namespace weft::cuda {

constexpr int kThreads = 128;

template <class T, class Code, int group, bool rounds, class Mathematics>
WEFT_DEVICE void silu_and_mul_per_block_quant(const SiluAndMulPerBlockQuantArguments& arguments) {
  constexpr int kElements = 16, kOfLoad = kElementsOfLoad<T>, kLoads = kElements / kOfLoad;
  constexpr int kLanes = group / kElements;
  // Loads of neighbouring lanes lie side by side; a lane's next load is one such row of them further on.
  constexpr int kStep = kLanes * kOfLoad;
  const std::uint32_t columns = arguments.columns;
  const GroupPlace at = group_place<kThreads, kLanes>(arguments.order, arguments.rows, columns / group);
  const std::uint32_t first = at.group * group + at.lane * kOfLoad;
  const T* gates = static_cast<const T*>(arguments.x) + (product(at.row, 2 * columns) + first);
  FourWords gate[kLoads], up[kLoads];
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    gate[i] = load_once(gates + i * kStep);
    up[i] = load_once(gates + columns + i * kStep);
  }
  const float bound = arguments.rule.bound == nullptr ? float_of(0x7f800000u) : load(arguments.rule.bound);

  float values[kElements];
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) gated_values<T, rounds, Mathematics>(gate[i], up[i], values + i * kOfLoad);
  const float largest = largest_of_lanes<kLanes, kElements>(values);
  const float scale = scale_of<Code>(largest, arguments.rule, bound);
  std::uint32_t words[kElements / 4];
  quantize<Code, kElements>(values, largest, scale, words);

  if (!at.is_live) return;
  auto* codes = static_cast<std::uint8_t*>(arguments.codes) + (product(at.row, columns) + first);
  WEFT_UNROLL
  for (int i = 0; i < kLoads; ++i) store_words<kOfLoad / 4>(codes + i * kStep, words + i * (kOfLoad / 4));
  if (at.lane == 0) store(scale_at(arguments.places, at), scale);
}

}  // namespace weft::cuda

#include "kernels/cuda/device/silu_and_mul_per_block_quant_list.cuh"
#define WEFT_LIST(KERNEL)                                                                    \
  WEFT_SILU_AND_MUL_PER_BLOCK_QUANT(KERNEL, silu_and_mul_per_block_quant, WEFT_FAST_THREADS) \
  WEFT_SILU_AND_MUL_PER_BLOCK_QUANT_TRUNCATED(KERNEL, silu_and_mul_per_block_quant, WEFT_FAST_THREADS)
#define WEFT_FAST_THREADS(group) 128
WEFT_CUDA_KERNELS(silu_and_mul_per_block_quant, SiluAndMulPerBlockQuantArguments, WEFT_LIST)
