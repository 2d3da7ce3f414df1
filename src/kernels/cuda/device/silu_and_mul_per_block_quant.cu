// The fast design of silu_and_mul_per_block_quant.h.

#include "kernels/cuda/device/lane_group.cuh"
#include "kernels/cuda/device/silu.cuh"

namespace weft::cuda {

template <class T, class Code, int group, bool rounds, class Mathematics>
WEFT_DEVICE void silu_and_mul_per_block_quant(const SiluAndMulPerBlockQuantArguments& arguments) {
  using Lane = LaneOfGroup<T, group>;
  const std::uint32_t columns = arguments.columns;
  const Lane lane = lane_of_group<T, group>(arguments);
  const T* gates = static_cast<const T*>(arguments.x) + (product(lane.at.row, 2 * columns) + lane.column);
  FourWords gate[Lane::kLoads], up[Lane::kLoads];
  WEFT_UNROLL
  for (int i = 0; i < Lane::kLoads; ++i) {
    gate[i] = load_once(gates + i * Lane::kStep);
    up[i] = load_once(gates + columns + i * Lane::kStep);
  }
  const float bound = bound_of(arguments.rule);

  float values[Lane::kElements];
  WEFT_UNROLL
  for (int i = 0; i < Lane::kLoads; ++i)
    gated_values<T, rounds, Mathematics>(gate[i], up[i], values + i * Lane::kOfLoad);
  store_group<Code>(arguments, lane, bound, values);
}

}  // namespace weft::cuda

#include "kernels/cuda/device/silu_and_mul_per_block_quant_list.cuh"
#define WEFT_LIST(KERNEL)                                                                    \
  WEFT_SILU_AND_MUL_PER_BLOCK_QUANT(KERNEL, silu_and_mul_per_block_quant, WEFT_FAST_THREADS) \
  WEFT_SILU_AND_MUL_PER_BLOCK_QUANT_TRUNCATED(KERNEL, silu_and_mul_per_block_quant, WEFT_FAST_THREADS)
#define WEFT_FAST_THREADS(group) kGroupThreads
WEFT_CUDA_KERNELS(silu_and_mul_per_block_quant, SiluAndMulPerBlockQuantArguments, WEFT_LIST)
