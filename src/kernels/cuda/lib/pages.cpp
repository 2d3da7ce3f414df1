#include "kernels/cuda/lib/pages.h"

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/lib/group_launch.h"

namespace weft::cuda {

ElementKind kind_of(DType dtype) {
  if (dtype == DType::f32) return ElementKind::f32;
  if (dtype == DType::f16) return ElementKind::f16;
  CHECK(dtype == DType::bf16, "[cuda] elements must be f32, f16 or bf16, but are {}", dtype_text(dtype));
  return ElementKind::bf16;
}

Verdict supports_pages(const KvLayout& kv) {
  if (kv.dtype != DType::f32 && kv.dtype != DType::f16 && kv.dtype != DType::bf16)
    return Verdict::no(fmt::format("KV pages are {}; f32, f16 and bf16 are supported", dtype_text(kv.dtype)));
  if (kv.keys_are_values) return Verdict::no("the keys of the KV pages are the values; pages of both are supported");
  if (kv.head_dim % 8 != 0)
    return Verdict::no(fmt::format("head_dim is {}; multiples of 8 are supported", kv.head_dim));
  return Verdict::yes();
}

PagesPlace pages_place(const TensorView& pages) {
  const KvLayout& kv = pages.meta->kv;
  return {.pages = pages.data,
          .kind = kind_of(kv.dtype),
          .block = divisor_of(static_cast<std::uint32_t>(kv.block)),
          .heads = static_cast<std::uint32_t>(kv.heads),
          .head_dim = static_cast<std::uint32_t>(kv.head_dim)};
}

}  // namespace weft::cuda
