#pragma once

// KV pages as arguments of kernels.

#include "kernels/cuda/lib/arguments.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// Of f32, f16 and bf16; InternalError for others.
ElementKind kind_of(DType dtype);

// Whether pages are of a type that kernels here read and write.
Verdict supports_pages(const KvLayout& kv);
PagesPlace pages_place(const TensorView& pages);

}  // namespace weft::cuda
