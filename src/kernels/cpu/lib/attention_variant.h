#pragma once

// Selects the code for the device's instruction set, and checks which KV pages it supports.

#include <fmt/core.h>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/kernel.h"

namespace weft::cpu {

inline const AttentionKernels& attention_kernels_for(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? attention_kernels_avx512
         : features >= CpuFeatures::avx2 ? attention_kernels_avx2
                                         : attention_kernels_baseline;
}

inline Verdict supports_pages(const KvLayout& kv) {
  if (kv.dtype != DType::f32 && kv.dtype != DType::f16 && kv.dtype != DType::bf16) {
    return Verdict::no(fmt::format("KV pages are {}; f32, f16 and bf16 are supported", dtype_text(kv.dtype)));
  }
  if (kv.head_dim % 8 != 0) {
    return Verdict::no(fmt::format("head_dim is {}; multiples of 8 are supported", kv.head_dim));
  }
  return Verdict::yes();
}

}  // namespace weft::cpu
