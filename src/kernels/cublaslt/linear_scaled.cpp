// linear_scaled by cuBLASLt, for fp8 codes: with one scale on each side, or with one for each row on both sides.

#include <fmt/core.h>

#include "kernels/cublaslt/lib/product_call.h"
#include "kernels/registry.h"

namespace weft::cublaslt {
namespace {

// Whether there is a single scale, [] or [1]. This is also true of one scale for each row if there is only one row.
bool is_one(const Meta& scale) { return element_count(scale.shape) == Dim(1); }

ProductScales scales_of(bool is_one_of_x, bool is_one_of_weight) {
  return is_one_of_x && is_one_of_weight ? ProductScales::whole : ProductScales::rows;
}

Verdict takes_scales(const Meta& x_scale, const Meta& weight_scale, const Dim& rows) {
  const bool is_mixed = is_one(weight_scale) || (is_one(x_scale) && !(rows == Dim(1)));
  if (is_one(x_scale) && is_one(weight_scale)) return Verdict::yes();
  if (is_mixed)
    return Verdict::no(fmt::format("takes one scale on each side, or one for each row, not {} and {}", x_scale.text(),
                                   weight_scale.text()));
  for (const Meta* scale : {&x_scale, &weight_scale})
    if (!scale->is_contiguous()) return Verdict::no(fmt::format("wants contiguous scales, not {}", scale->text()));
  return Verdict::yes();
}

Verdict supports(const DeviceDescription& device, const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[2];
  const Meta &x_scale = *request.operands[1], &weight_scale = *request.operands[3];
  const std::optional<Meta>& bias = request.operands[4];
  if (const Verdict codes = takes_codes(x, weight, bias, request.results[0]); !codes) return codes;
  if (const Verdict scales = takes_scales(x_scale, weight_scale, x.shape[0]); !scales) return scales;
  const ProductScales scales = scales_of(is_one(x_scale), is_one(weight_scale));
  if (scales == ProductScales::rows && bias) return Verdict::no("takes no bias with scales of rows");
  return multiplies_codes(device, scales);
}

void run(const KernelCall& call) {
  const TensorView &x_scale = call.operands[1], &weight_scale = call.operands[3];
  LibraryProduct product = product_of(call.operands[0], call.operands[2], call.operands[4], call.results[0]);
  product.x_scale = x_scale.as<const float>();
  product.weight_scale = weight_scale.as<const float>();
  product.scales = scales_of(x_scale.elements() == 1, weight_scale.elements() == 1);
  run_product(product, call);
}

}  // namespace
}  // namespace weft::cublaslt

KERNELS(cublaslt, linear_scaled) {
  using namespace weft::cublaslt;
  registry.add(
      {.op = "linear_scaled",
       .provider = "cublaslt",
       .supported = [](const DeviceDescription& device) { return multiplies_codes(device, ProductScales::whole); },
       .prepare =
           [](Kernel& kernel, const DeviceDescription& device) {
             kernel.supports = [device](const KernelRequest& request) { return supports(device, request); };
           },
       .batch_invariant = false,
       .launches = true,
       .vector_bytes = kVectorBytes,
       .run = run,
       .note = "cublasLtMatmul of fp8 codes, scaled as a whole or by rows; on fake-cuda the host in its place"});
}
