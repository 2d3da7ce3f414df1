// Rows of a matrix by index, copied in units of 1 to 16 bytes or converted between f32, f16 and bf16 by 8 elements.
// Each thread has a unit, so that the lanes of a warp read and write contiguous bytes. Each unit of a row reads the
// row's index again, from the first-level cache.

#include "kernels/cuda/device/elements.cuh"

namespace weft::cuda {

struct UnitPlace {
  std::uint64_t from, to;  // in units
  bool is_live;
};
WEFT_DEVICE UnitPlace unit_place(const GatherRowsArguments& arguments) {
  const std::uint32_t unit = block_index() * kGatherThreads + thread_index();
  const std::uint32_t row = quotient(unit, arguments.units_of_row), units = arguments.units_of_row.divisor;
  if (row >= arguments.rows) return {0, 0, false};
  const std::uint64_t id = arguments.ids_are_wide ? load(static_cast<const std::uint64_t*>(arguments.ids) + row)
                                                  : load(static_cast<const std::uint32_t*>(arguments.ids) + row);
  return {id * units + (unit - row * units), unit, true};
}

template <class Unit>
WEFT_DEVICE void copy_rows(const GatherRowsArguments& arguments) {
  const UnitPlace at = unit_place(arguments);
  if (!at.is_live) return;
  store(static_cast<Unit*>(arguments.to) + at.to, load(static_cast<const Unit*>(arguments.from) + at.from));
}

template <class From, class To>
WEFT_DEVICE void convert_rows(const GatherRowsArguments& arguments) {
  constexpr int kElements = kConvertedElements;
  const UnitPlace at = unit_place(arguments);
  if (!at.is_live) return;
  float values[kElements];
  WEFT_UNROLL
  for (int i = 0; i < kElements; i += kElementsOfLoad<From>) {
    const From* from = static_cast<const From*>(arguments.from) + (at.from * kElements + i);
    unpack<From>(load(reinterpret_cast<const FourWords*>(from)), values + i);
  }
  WEFT_UNROLL
  for (int i = 0; i < kElements; i += kElementsOfLoad<To>)
    store_as<To>(arguments.to, at.to * kElements + i, values + i);
}

}  // namespace weft::cuda

// clang-format off
#define WEFT_LIST(KERNEL) \
  KERNEL(gather_rows_1, kGatherThreads, weft::cuda::copy_rows<std::uint8_t>) \
  KERNEL(gather_rows_2, kGatherThreads, weft::cuda::copy_rows<std::uint16_t>) \
  KERNEL(gather_rows_4, kGatherThreads, weft::cuda::copy_rows<std::uint32_t>) \
  KERNEL(gather_rows_8, kGatherThreads, weft::cuda::copy_rows<weft::cuda::TwoWords>) \
  KERNEL(gather_rows_16, kGatherThreads, weft::cuda::copy_rows<weft::cuda::FourWords>) \
  KERNEL(gather_rows_f32_f16, kGatherThreads, weft::cuda::convert_rows<float, Half>) \
  KERNEL(gather_rows_f32_bf16, kGatherThreads, weft::cuda::convert_rows<float, Brain>) \
  KERNEL(gather_rows_f16_f32, kGatherThreads, weft::cuda::convert_rows<Half, float>) \
  KERNEL(gather_rows_f16_bf16, kGatherThreads, weft::cuda::convert_rows<Half, Brain>) \
  KERNEL(gather_rows_bf16_f32, kGatherThreads, weft::cuda::convert_rows<Brain, float>) \
  KERNEL(gather_rows_bf16_f16, kGatherThreads, weft::cuda::convert_rows<Brain, Half>)
// clang-format on
WEFT_CUDA_KERNELS(gather_rows, GatherRowsArguments, WEFT_LIST)
