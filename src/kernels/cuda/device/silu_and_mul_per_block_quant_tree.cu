// The tree design of silu_and_mul_per_block_quant.h.

#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/silu.cuh"

namespace weft::cuda {

template <class T>
WEFT_DEVICE float element(const T* from WEFT_SITE) {
  const T value = load(from WEFT_PASS_SITE);
  if constexpr (sizeof(T) == 4) {
    return value;
  } else {
    float low, high;
    unpack(value.code, low, high, T{});
    return low;
  }
}

template <class T, class Code, int group, bool rounds, class Mathematics>
WEFT_DEVICE void silu_and_mul_per_block_quant_tree(const SiluAndMulPerBlockQuantArguments& arguments) {
  WEFT_SHARED(float, largest, group);
  const std::uint32_t row = block_index(), number = block_row(), columns = arguments.columns;
  const std::uint32_t thread = thread_index(), column = number * group + thread;
  const T* gate = static_cast<const T*>(arguments.x) + (product(row, 2 * columns) + column);
  float active = Mathematics::template silu<false>(element(gate)), unused = 0;
  if constexpr (rounds) round_pair<T>(active, unused);
  float value = active * element(gate + columns);
  if constexpr (rounds) round_pair<T>(value, unused);

  largest[thread] = magnitude(value);
  wait_for_block();
  for (unsigned half = group / 2; half > 0; half /= 2) {
    if (thread < half) largest[thread] = larger(largest[thread], largest[thread + half]);
    wait_for_block();
  }
  const GroupRule& rule = arguments.rule;
  const float scale = scale_of<Code>(largest[0], rule, bound_of(rule));
  if (thread == 0) store(scale_at(arguments.places, {row, number, thread, true}), scale);

  const float scaled[4] = {divide(value, scale), 0, 0, 0};
  auto* codes = static_cast<std::uint8_t*>(arguments.codes) + (product(row, columns) + column);
  store(codes, static_cast<std::uint8_t>(Code::pack(scaled, false)));
}

}  // namespace weft::cuda

#include "kernels/cuda/device/silu_and_mul_per_block_quant_list.cuh"
#define WEFT_LIST(KERNEL) \
  WEFT_SILU_AND_MUL_PER_BLOCK_QUANT(KERNEL, silu_and_mul_per_block_quant_tree, WEFT_TREE_THREADS)
#define WEFT_TREE_THREADS(group) group
WEFT_CUDA_KERNELS(silu_and_mul_per_block_quant_tree, SiluAndMulPerBlockQuantArguments, WEFT_LIST)
