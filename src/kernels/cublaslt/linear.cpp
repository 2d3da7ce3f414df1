// linear by cuBLASLt. The library chooses the order of its f32 sums by the sizes, so results depend on the number of
// rows. Without a queue, on a fake device, the host computes it.

#include <fmt/core.h>

#include "kernels/cublaslt/lib/product_call.h"
#include "kernels/registry.h"

namespace weft::cublaslt {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  if (!is_float(x.dtype)) return Verdict::no(fmt::format("takes bf16, f16 and f32, not {}", x.text()));
  return takes_matrices(x, weight, request.operands[2], request.results[0]);
}

void run(const KernelCall& call) {
  run_product(product_of(call.operands[0], call.operands[1], call.operands[2], call.results[0]), call);
}

}  // namespace
}  // namespace weft::cublaslt

KERNELS(cublaslt, linear) {
  using namespace weft::cublaslt;
  registry.add({.op = "linear",
                .provider = "cublaslt",
                .supported = runs_on_gpus,
                .supports = supports,
                .batch_invariant = false,
                .launches = true,
                .vector_bytes = kVectorBytes,
                .run = run,
                .note = "cublasLtMatmul in f32; on fake-cuda the host in its place"});
}
