// The two steps of docs/cuda-silu-quant.md that lie between the designs of silu_and_mul_per_block_quant: 8 elements a
// thread, one load of 16 bytes of each half. bf16 in, codes of f8e4m3, groups of 128, f32 between, the device's
// mathematics. For teaching and for the counts of that page; no provider offers them.

#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/silu.cuh"

namespace weft::cuda {

constexpr int kStepGroup = 128, kStepElements = kElementsOfLoad<Brain>;

template <bool corrects>
WEFT_DEVICE void silu_and_mul_step(const SiluAndMulPerBlockQuantArguments& arguments) {
  constexpr int kLanes = kStepGroup / kStepElements, kWords = kStepElements / 4;
  const std::uint32_t columns = arguments.columns;
  const GroupPlace at =
      group_place<kGroupThreads, kLanes>(arguments.order, arguments.rows, columns / std::uint32_t{kStepGroup});
  const std::uint32_t first = at.group * kStepGroup + at.lane * kStepElements;
  const Brain* gates = static_cast<const Brain*>(arguments.x) + (product(at.row, 2 * columns) + first);
  const FourWords gate = load_once(gates), up = load_once(gates + columns);

  float values[kStepElements];
  gated_values<Brain, false, DeviceMathematics>(gate, up, values);
  const float largest = largest_of_lanes<kLanes, kStepElements>(values);
  const float scale = scale_of<Fp8>(largest, arguments.rule, bound_of(arguments.rule));
  std::uint32_t words[kWords];
  if constexpr (corrects) {
    quantize<Fp8, kStepElements>(values, largest, scale, words);
  } else {
    WEFT_UNROLL
    for (int i = 0; i < kStepElements; ++i) values[i] = divide(values[i], scale);
    WEFT_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = Fp8::pack(values + 4 * i, false);
  }

  if (!at.is_live) return;
  store_words<kWords>(static_cast<std::uint8_t*>(arguments.codes) + (product(at.row, columns) + first), words);
  if (at.lane == 0) store(scale_at(arguments.places, at), scale);
}

}  // namespace weft::cuda

#define WEFT_LIST(KERNEL)                                                              \
  KERNEL(silu_and_mul_wide_loads, kGroupThreads, weft::cuda::silu_and_mul_step<false>) \
  KERNEL(silu_and_mul_corrected_quotients, kGroupThreads, weft::cuda::silu_and_mul_step<true>)
WEFT_CUDA_KERNELS(silu_and_mul_steps, SiluAndMulPerBlockQuantArguments, WEFT_LIST)
#undef WEFT_LIST
