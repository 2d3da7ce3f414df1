#pragma once

// Selects the code for the device's instruction set, and checks which KV pages it supports.

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/kernel.h"

namespace weft::cpu {

inline const AttentionKernels& attention_kernels_for(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? attention_kernels_avx512
         : features >= CpuFeatures::avx2 ? attention_kernels_avx2
                                         : attention_kernels_baseline;
}

inline constexpr DType kPageTypes[kPageElements] = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0};
inline std::size_t page_element_of(DType dtype) {  // kPageElements for other types
  return static_cast<std::size_t>(std::find(std::begin(kPageTypes), std::end(kPageTypes), dtype) - kPageTypes);
}

// Whether products are computed in tiles, where the processor has them.
inline bool attends_in_tiles(CpuFeatures features, DType query, DType pages) {
  return features >= CpuFeatures::amx && query == DType::bf16 && pages == DType::bf16;
}

inline void (*attend_for(CpuFeatures features, DType query, DType pages))(const AttentionTask&) {
  if (attends_in_tiles(features, query, pages)) return attend_in_tiles_amx;
  return attention_kernels_for(features).attend[page_element_of(pages)];
}

inline Verdict supports_pages(const KvLayout& kv) {
  if (page_element_of(kv.dtype) == kPageElements) {
    return Verdict::no(
        fmt::format("KV pages are {}; f32, f16, bf16, f8e4m3 and q8_0 are supported", dtype_text(kv.dtype)));
  }
  if (kv.head_dim % 8 != 0) {
    return Verdict::no(fmt::format("head_dim is {}; multiples of 8 are supported", kv.head_dim));
  }
  return Verdict::yes();
}

}  // namespace weft::cpu
