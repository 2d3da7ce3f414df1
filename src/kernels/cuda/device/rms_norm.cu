// rms_norm and fused_add_rms_norm, plain or followed by quantization: one block for each row, 16-byte loads, one sum
// over the block. Once the scale is known, a row is read again from the first-level cache, so rows may have any length.
// Bytes of device memory an element (bf16): 4 plain, 3 with codes; 4 more with the residual.
//
// y = x * rsqrt(mean(x^2) + epsilon), rounded to the weight's type before and after the product with it, then to x's.

#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/row_parts.cuh"
#include "kernels/cuda/device/row_reduction.cuh"
#include "kernels/cuda/device/token_epilogue.cuh"

namespace weft::cuda {

// Loads the values to normalize: x, or x + residual, whose value rounded to T is also returned as `rounded`.
template <class T, bool adds>
WEFT_DEVICE void load_row_values(const RmsNormArguments& arguments, const RowPart<T>& part, float* values,
                                 float* rounded) {
  constexpr int kOfLoad = kElementsOfLoad<T>;
  unpack<T>(load(reinterpret_cast<const FourWords*>(static_cast<const T*>(arguments.x) + part.place)), values);
  if constexpr (adds) {
    float residual[kOfLoad];
    const T* from = static_cast<const T*>(arguments.residual) + part.place;
    unpack<T>(load(reinterpret_cast<const FourWords*>(from)), residual);
    WEFT_UNROLL
    for (int i = 0; i < kOfLoad; ++i) values[i] = rounded[i] = values[i] + residual[i];
    WEFT_UNROLL
    for (int i = 0; i < kOfLoad; i += 2) round_pair<T>(rounded[i], rounded[i + 1]);
    if (arguments.normalizes_rounded) {
      WEFT_UNROLL
      for (int i = 0; i < kOfLoad; ++i) values[i] = rounded[i];
    }
  }
}

// Computes values * scale * weight, rounded to T.
template <class T>
WEFT_DEVICE void normalize(const RmsNormArguments& arguments, std::uint32_t column, float scale, float* values) {
  constexpr int kOfLoad = kElementsOfLoad<T>;
  WEFT_UNROLL
  for (int i = 0; i < kOfLoad; ++i) values[i] = values[i] * scale;
  if (arguments.weight != nullptr) {
    float weight[kOfLoad];
    if (sizeof(T) == 4 || !arguments.weight_is_wide) {
      const T* from = static_cast<const T*>(arguments.weight) + column;
      unpack<T>(load(reinterpret_cast<const FourWords*>(from)), weight);
      WEFT_UNROLL
      for (int i = 0; i < kOfLoad; i += 2) round_pair<T>(values[i], values[i + 1]);
    } else {
      const float* from = static_cast<const float*>(arguments.weight) + column;
      WEFT_UNROLL
      for (int i = 0; i < kOfLoad; i += 4)
        unpack<float>(load(reinterpret_cast<const FourWords*>(from + i)), weight + i);
    }
    WEFT_UNROLL
    for (int i = 0; i < kOfLoad; ++i) values[i] = values[i] * weight[i];
  }
  WEFT_UNROLL
  for (int i = 0; i < kOfLoad; i += 2) round_pair<T>(values[i], values[i + 1]);
}

// The epilogues. One that needs the whole row reads it once before it computes the parts.
template <class T>
struct PlainEpilogue {
  static constexpr bool kSeesRow = false;
  WEFT_DEVICE void finish(const RmsNormArguments& arguments, const RowPart<T>& part, float* values) {
    if (part.is_live) store_as<T>(arguments.output, part.place, values);
  }
};

// Codes of values * (1 / scale) with a given scale.
template <class T>
struct StaticEpilogue {
  static constexpr bool kSeesRow = false;
  WEFT_DEVICE void finish(const RmsNormArguments& arguments, const RowPart<T>& part, float* values) {
    constexpr int kOfLoad = kElementsOfLoad<T>;
    std::uint32_t words[kOfLoad / 4];
    quantize_by_given_scale<kOfLoad>(values, arguments.given_scale, words);
    if (part.is_live) store_words<kOfLoad / 4>(static_cast<std::uint8_t*>(arguments.output) + part.place, words);
  }
};

// One scale for each 32, 64 or 128 columns, which are in neighbouring lanes.
template <class T, class Code>
struct GroupEpilogue {
  static constexpr bool kSeesRow = false;
  WEFT_DEVICE void finish(const RmsNormArguments& arguments, const RowPart<T>& part, float* values) {
    constexpr int kOfLoad = kElementsOfLoad<T>;
    const std::uint32_t lanes = arguments.group / kOfLoad;
    float largest = largest_of_lanes<1, kOfLoad>(values);
    for (std::uint32_t distance = lanes / 2; distance > 0; distance /= 2)
      largest = larger(largest, exchange(largest, distance));
    const float scale = scale_of<Code>(largest, arguments.rule, bound_of(arguments.rule));
    std::uint32_t words[kOfLoad / 4];
    quantize<Code, kOfLoad>(values, largest, scale, words);
    if (!part.is_live) return;
    store_words<kOfLoad / 4>(static_cast<std::uint8_t*>(arguments.output) + part.place, words);
    if (thread_index() % lanes == 0)
      store(scale_at(arguments.places, {block_index(), part.column / arguments.group, 0, true}), scale);
  }
};

template <class T, bool adds, class Epilogue, class Sum>
WEFT_DEVICE void rms_norm(const RmsNormArguments& arguments) {
  constexpr int kOfLoad = kElementsOfLoad<T>;
  const std::uint32_t columns = arguments.columns, turns = turns_of_row<T>(columns);
  Sum sum;
  float values[kOfLoad] = {}, rounded[kOfLoad];
  for (std::uint32_t turn = 0; turn < turns_of_row<T>(arguments.variance_columns); ++turn) {
    const RowPart<T> part = part_of_row<T>(turn, columns);
    if (part.is_live) load_row_values<T, adds>(arguments, part, values, rounded);
    const std::uint32_t left = part.column < arguments.variance_columns ? arguments.variance_columns - part.column : 0;
    WEFT_UNROLL
    for (int i = 0; i < kOfLoad; ++i) values[i] = values[i] * values[i];
    sum.template add<kRowThreads, kOfLoad>(values, left < kOfLoad ? left : kOfLoad);
  }
  const float mean = divide(sum.template total<kRowThreads>(), static_cast<float>(arguments.variance_columns));
  const float scale = divide(1.0f, square_root(mean + arguments.epsilon));

  Epilogue epilogue;
  if constexpr (Epilogue::kSeesRow) {
    WEFT_UNROLL_BY(2)
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const RowPart<T> part = part_of_row<T>(turn, columns);
      if (!part.is_live) continue;
      load_row_values<T, adds>(arguments, part, values, rounded);
      normalize<T>(arguments, part.column, scale, values);
      epilogue.see(values);
    }
    epilogue.end_row(arguments);
  }
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const RowPart<T> part = part_of_row<T>(turn, columns);
    if (part.is_live) {
      load_row_values<T, adds>(arguments, part, values, rounded);
      if constexpr (adds) store_as<T>(arguments.residual_output, part.place, rounded);
      normalize<T>(arguments, part.column, scale, values);
    } else {
      WEFT_UNROLL
      for (int i = 0; i < kOfLoad; ++i) values[i] = 0;
    }
    epilogue.finish(arguments, part, values);
  }
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, epilogue, ...) \
  KERNEL(name##_##x##_##epilogue##_##mathematics, kRowThreads, weft::cuda::rms_norm<T, adds, __VA_ARGS__, Sum>)
#define WEFT_TAILS(KERNEL, name, x, adds, mathematics, T, Sum) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, plain, PlainEpilogue<T>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, static_f8e4m3, StaticEpilogue<T>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, token_f8e4m3, TokenEpilogue<T, Fp8>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, token_i8, TokenEpilogue<T, Int8>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, group_f8e4m3, GroupEpilogue<T, Fp8>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, group_i8, GroupEpilogue<T, Int8>) \
  WEFT_KERNEL_OF(KERNEL, name, x, adds, mathematics, T, Sum, group_i8_truncated, GroupEpilogue<T, TruncatedInt8>)
#if !defined(WEFT_REFERENCE_KERNELS)
#define WEFT_MATHEMATICS(KERNEL, name, x, adds, T) WEFT_TAILS(KERNEL, name, x, adds, device, T, DeviceSum)
#else
#define WEFT_MATHEMATICS(KERNEL, name, x, adds, T) \
  WEFT_TAILS(KERNEL, name, x, adds, device, T, DeviceSum) WEFT_TAILS(KERNEL, name, x, adds, reference, T, ReferenceSum)
#endif
#define WEFT_NORMS(KERNEL, x, T) \
  WEFT_MATHEMATICS(KERNEL, rms_norm, x, false, T) WEFT_MATHEMATICS(KERNEL, fused_add_rms_norm, x, true, T)
#define WEFT_LIST(KERNEL) WEFT_NORMS(KERNEL, bf16, Brain) WEFT_NORMS(KERNEL, f16, Half) WEFT_NORMS(KERNEL, f32, float)
// clang-format on
WEFT_CUDA_KERNELS(rms_norm, RmsNormArguments, WEFT_LIST)
