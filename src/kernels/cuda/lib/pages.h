#pragma once

// KV pages as arguments of kernels.

#include "kernels/cuda/lib/arguments.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// For f32, f16 and bf16. Throws InternalError for others.
ElementKind kind_of(DType dtype);

// Whether these kernels can read and write the type of the pages.
Verdict supports_pages(const KvLayout& kv);
PagesPlace pages_place(const TensorView& pages);

}  // namespace weft::cuda
