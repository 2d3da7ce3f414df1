// silu_and_mul, plain or followed by quantization with a given scale or to f4e2m1 in groups of 16. Each thread has 16
// bytes of gates and the 16 bytes that they multiply. Bytes an element (bf16): 6 plain, 5 with codes of f8e4m3, 4.56
// with those of f4e2m1. A group of 16 is in 2 neighbouring lanes (f32: 4).

#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/silu.cuh"

namespace weft::cuda {

// The begin of a thread's 16 bytes; `column` may be after the row's end.
struct RowPlace {
  std::uint32_t row, column;
};
template <class T>
WEFT_DEVICE RowPlace row_place(const SiluAndMulArguments& arguments) {
  const std::uint32_t row = quotient(block_index(), arguments.slices);
  const std::uint32_t slice = block_index() - row * arguments.slices.divisor;
  return {row, (slice * kSiluThreads + thread_index()) * kElementsOfLoad<T>};
}

template <class T, bool rounds, class Mathematics>
WEFT_DEVICE void load_gated(const SiluAndMulArguments& arguments, std::uint32_t row, std::uint32_t column,
                            float* values) {
  const std::uint32_t columns = arguments.columns;
  const T* gates = static_cast<const T*>(arguments.x) + (product(row, 2 * columns) + column);
  const FourWords gate = load_once(gates), up = load_once(gates + columns);
  gated_values<T, rounds, Mathematics>(gate, up, values);
}

template <class T, class Mathematics>
WEFT_DEVICE void silu_and_mul(const SiluAndMulArguments& arguments) {
  const RowPlace at = row_place<T>(arguments);
  if (at.column >= arguments.columns) return;
  float values[kElementsOfLoad<T>];
  load_gated<T, true, Mathematics>(arguments, at.row, at.column, values);
  store_as<T>(arguments.output, product(at.row, arguments.columns) + at.column, values);
}

template <class T, bool rounds, class Mathematics>
WEFT_DEVICE void silu_and_mul_static_fp8(const SiluAndMulArguments& arguments) {
  constexpr int kOfLoad = kElementsOfLoad<T>;
  const RowPlace at = row_place<T>(arguments);
  if (at.column >= arguments.columns) return;
  float values[kOfLoad];
  load_gated<T, rounds, Mathematics>(arguments, at.row, at.column, values);
  std::uint32_t words[kOfLoad / 4];
  quantize_by_given_scale<kOfLoad>(values, arguments.scale, words);
  auto* codes = static_cast<std::uint8_t*>(arguments.output) + (product(at.row, arguments.columns) + at.column);
  store_words<kOfLoad / 4>(codes, words);
}

WEFT_DEVICE float reciprocal_or_zero(float x) { return x == 0.0f ? 0.0f : divide(1.0f, x); }

// The index of a group's scale in tiles of 128 rows and 4 groups, or row by row.
WEFT_DEVICE std::uint64_t place_of_group(const SiluAndMulArguments& arguments, std::uint32_t row, std::uint32_t group) {
  if (arguments.tiles == 0) return product(row, arguments.columns / kFp4Group) + group;
  const std::uint64_t tile = product(row / kScaleTileRows, arguments.tiles) + group / kScaleTileGroups;
  return tile * (kScaleTileRows * kScaleTileGroups) + row % 32 * 16 + row % kScaleTileRows / 32 * 4 +
         group % kScaleTileGroups;
}

// Blocks also cover the rows and groups that tiles have beyond those of x: their scales are 0.
template <class T, bool rounds, class Mathematics>
WEFT_DEVICE void silu_and_mul_fp4(const SiluAndMulArguments& arguments) {
  constexpr int kOfLoad = kElementsOfLoad<T>;
  const RowPlace at = row_place<T>(arguments);
  const std::uint32_t columns = arguments.columns;
  const bool is_live = at.row < arguments.rows && at.column < columns;
  float values[kOfLoad];
  load_gated<T, rounds, Mathematics>(arguments, at.row < arguments.rows ? at.row : arguments.rows - 1,
                                     at.column < columns ? at.column : columns - kOfLoad, values);
  const float largest = largest_of_lanes<kFp4Group / kOfLoad, kOfLoad>(values);
  const float global_scale = load(arguments.scale);
  const float scaled[4] = {largest * (1.0f / 6.0f) * global_scale, 0, 0, 0};
  const std::uint32_t scale = Fp8::pack(scaled, false) & 0xffu;
  const float inverse = reciprocal_or_zero(number_of_fp8(scale & 0x7fu) * reciprocal_or_zero(global_scale));
  std::uint32_t codes = 0;
  WEFT_UNROLL
  for (int i = 0; i < kOfLoad; ++i) codes |= fp4_code(values[i] * inverse + 0.0f) << 4 * i;

  const std::uint32_t group = at.column / kFp4Group;
  const bool has_scale = is_live || (arguments.tiles != 0 && group < arguments.tiles * kScaleTileGroups);
  if (has_scale && at.column % kFp4Group == 0)
    store(arguments.group_scales + place_of_group(arguments, at.row, group),
          static_cast<std::uint8_t>(is_live ? scale : 0u));
  if (!is_live) return;
  auto* to = static_cast<std::uint8_t*>(arguments.output) + (product(at.row, columns) + at.column) / 2;
  if constexpr (kOfLoad == 8) {
    store(reinterpret_cast<std::uint32_t*>(to), codes);
  } else {
    store(reinterpret_cast<std::uint16_t*>(to), static_cast<std::uint16_t>(codes));
  }
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_TAILS(KERNEL, x, T, mathematics, Mathematics) \
  KERNEL(silu_and_mul_##x##_plain_##mathematics, kSiluThreads, weft::cuda::silu_and_mul<T, Mathematics>) \
  KERNEL(silu_and_mul_##x##_static_f8e4m3_wide_##mathematics, kSiluThreads, weft::cuda::silu_and_mul_static_fp8<T, false, Mathematics>) \
  KERNEL(silu_and_mul_##x##_static_f8e4m3_rounded_##mathematics, kSiluThreads, weft::cuda::silu_and_mul_static_fp8<T, true, Mathematics>) \
  KERNEL(silu_and_mul_##x##_f4e2m1_wide_##mathematics, kSiluThreads, weft::cuda::silu_and_mul_fp4<T, false, Mathematics>) \
  KERNEL(silu_and_mul_##x##_f4e2m1_rounded_##mathematics, kSiluThreads, weft::cuda::silu_and_mul_fp4<T, true, Mathematics>)
#if !defined(WEFT_REFERENCE_KERNELS)
#define WEFT_MATHEMATICS(KERNEL, x, T) WEFT_TAILS(KERNEL, x, T, device, weft::cuda::DeviceMathematics)
#else
#define WEFT_MATHEMATICS(KERNEL, x, T) \
  WEFT_TAILS(KERNEL, x, T, device, weft::cuda::DeviceMathematics) \
  WEFT_TAILS(KERNEL, x, T, reference, weft::cuda::ReferenceMath)
#endif
#define WEFT_LIST(KERNEL) \
  WEFT_MATHEMATICS(KERNEL, bf16, Brain) WEFT_MATHEMATICS(KERNEL, f16, Half) WEFT_MATHEMATICS(KERNEL, f32, float)
// clang-format on
WEFT_CUDA_KERNELS(silu_and_mul, SiluAndMulArguments, WEFT_LIST)
