// linear_scaled by cuBLASLt, of fp8 codes with one scale on each side. Scales of rows and columns are not the library's
// on every GPU.

#include <fmt/core.h>

#include "kernels/cublaslt/lib/product_call.h"
#include "kernels/registry.h"

namespace weft::cublaslt {
namespace {

// Where rows of codes begin, and the result's: the library's tensor cores read and write so much at once.
constexpr std::int64_t kVectorBytes = 16;
// What the library wants the columns of both matrices of codes to be a multiple of ("M must be divisible by 16", which
// are the weight's rows, and so K).
constexpr std::int64_t kTile = 16;

Verdict has_whole_rows(const Meta& meta, const char* name) {
  const std::int64_t columns = meta.shape.back().number();
  const std::int64_t stride = meta.is_contiguous() ? columns : meta.strides[0].number();
  if (bytes_of(meta.dtype, columns) % kVectorBytes == 0 && bytes_of(meta.dtype, stride) % kVectorBytes == 0)
    return Verdict::yes();
  return Verdict::no(fmt::format("rows of {} are no multiples of {} bytes: {}", name, kVectorBytes, meta.text()));
}

Verdict supports(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[2], &result = request.results[0];
  if (x.dtype != DType::f8e4m3) return Verdict::no(fmt::format("takes f8e4m3, not {}", x.text()));
  for (const std::size_t scale : {1, 3})
    if (!(element_count(request.operands[scale]->shape) == Dim(1)))
      return Verdict::no(fmt::format("takes one scale for all, not {}", request.operands[scale]->text()));
  if (const Verdict matrices = takes_matrices(x, weight, request.operands[4], result); !matrices) return matrices;
  if (request.operands[4] && !is_sixteen_bits(result.dtype))
    return Verdict::no(fmt::format("takes a bias of bf16 or f16, not {}", request.operands[4]->text()));
  for (const Dim& extent : weight.shape)
    if (extent.number() % kTile != 0)
      return Verdict::no(fmt::format("takes a weight in whole tiles of {}, not {}", kTile, weight.text()));
  if (const Verdict whole = has_whole_rows(x, "x"); !whole) return whole;
  if (const Verdict whole = has_whole_rows(weight, "the weight"); !whole) return whole;
  return has_whole_rows(result, "the result");
}

void run(const KernelCall& call) {
  LibraryProduct product = product_of(call.operands[0], call.operands[2], call.operands[4], call.results[0]);
  product.x_scale = call.operands[1].as<const float>();
  product.weight_scale = call.operands[3].as<const float>();
  run_product(product, call);
}

}  // namespace
}  // namespace weft::cublaslt

KERNELS(cublaslt, linear_scaled) {
  using namespace weft::cublaslt;
  registry.add({.op = "linear_scaled",
                .provider = "cublaslt",
                .supported = runs_on_gpus,
                .supports = supports,
                .batch_invariant = false,
                .launches = true,
                .run = run,
                .note = "cublasLtMatmul of fp8 codes, scaled as a whole; on fake-cuda the host in its place"});
}
