// Quantization per token, as a separate op: one block for each row, 16-byte loads, one maximum over the block. Once the
// scale is known, a row is read again from the first-level cache, so rows may have any length. 3 bytes of device memory
// an element (bf16).

#include "kernels/cuda/device/token_epilogue.cuh"

namespace weft::cuda {

template <class T>
WEFT_DEVICE void load_part(const DynamicPerTokenQuantArguments& arguments, const RowPart<T>& part, float* values) {
  unpack<T>(load(reinterpret_cast<const FourWords*>(static_cast<const T*>(arguments.x) + part.place)), values);
}

template <class T, class Code>
WEFT_DEVICE void dynamic_per_token_quant(const DynamicPerTokenQuantArguments& arguments) {
  const std::uint32_t columns = arguments.columns, turns = turns_of_row<T>(columns);
  TokenEpilogue<T, Code> epilogue;
  float values[kElementsOfLoad<T>];
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const RowPart<T> part = part_of_row<T>(turn, columns);
    if (!part.is_live) break;
    load_part(arguments, part, values);
    epilogue.see(values);
  }
  epilogue.end_row(arguments);
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const RowPart<T> part = part_of_row<T>(turn, columns);
    if (!part.is_live) break;
    load_part(arguments, part, values);
    epilogue.finish(arguments, part, values);
  }
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_TOKENS(KERNEL, x, T) \
  KERNEL(dynamic_per_token_quant_##x##_f8e4m3, kRowThreads, weft::cuda::dynamic_per_token_quant<T, Fp8>) \
  KERNEL(dynamic_per_token_quant_##x##_i8, kRowThreads, weft::cuda::dynamic_per_token_quant<T, Int8>)
#define WEFT_LIST(KERNEL) WEFT_TOKENS(KERNEL, bf16, Brain) WEFT_TOKENS(KERNEL, f16, Half) WEFT_TOKENS(KERNEL, f32, float)
// clang-format on
WEFT_CUDA_KERNELS(dynamic_per_token_quant, DynamicPerTokenQuantArguments, WEFT_LIST)
