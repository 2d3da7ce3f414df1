#pragma once

// An epilogue with one scale for each row, from its largest magnitude. A thread passes all its parts of the row, then
// the block computes the scale, then each part becomes codes. Arguments have places, rule and output.

#include "kernels/cuda/device/group_quantization.cuh"
#include "kernels/cuda/device/row_parts.cuh"
#include "kernels/cuda/device/row_reduction.cuh"

namespace weft::cuda {

template <class T, class Code>
struct TokenEpilogue {
  static constexpr bool kSeesRow = true;
  WEFT_DEVICE void see(const float* values) {
    WEFT_UNROLL
    for (int i = 0; i < kElementsOfLoad<T>; ++i) largest = Code::larger_magnitude(largest, values[i]);
  }
  template <class Arguments>
  WEFT_DEVICE void end_row(const Arguments& arguments) {
    largest = joined_over_block<kRowThreads>(largest, LargerValue{});
    const GroupRule& rule = arguments.rule;
    const float held = rule.bound == nullptr ? largest : smaller(largest, load(rule.bound));
    scale = larger(rule.by_reciprocal ? held * Code::kInverseLimit : divide(held, Code::kLimit), rule.least_scale);
    if (thread_index() == 0)
      store(arguments.places.scales + product(block_index(), arguments.places.row_stride), scale);
  }
  template <class Arguments>
  WEFT_DEVICE void finish(const Arguments& arguments, const RowPart<T>& part, float* values) {
    constexpr int kOfLoad = kElementsOfLoad<T>;
    std::uint32_t words[kOfLoad / 4];
    if (arguments.rule.codes_by_reciprocal) {
      quantize_by_product<Code, kOfLoad>(values, divide(1.0f, scale), words);
    } else {
      quantize<Code, kOfLoad>(values, largest, scale, words);
    }
    if (part.is_live) store_words<kOfLoad / 4>(static_cast<std::uint8_t*>(arguments.output) + part.place, words);
  }

  float largest = 0, scale = 0;
};

}  // namespace weft::cuda
