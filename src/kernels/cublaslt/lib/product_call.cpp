#include "kernels/cublaslt/lib/product_call.h"

#include <vector>

#include <fmt/core.h>

#include "kernels/launch_queue.h"
#include "kernels/strided.h"

namespace weft::cublaslt {
namespace {

// For codes the library requires that the weight's rows and K are multiples of this ("M must be divisible by 16", where
// M is the weight's rows).
constexpr std::int64_t kTile = 16;

Verdict has_whole_rows(const Meta& meta, const char* name) {
  const std::int64_t columns = meta.shape.back().number();
  const std::int64_t stride = meta.is_contiguous() ? columns : meta.strides[0].number();
  if (bytes_of(meta.dtype, columns) % kVectorBytes == 0 && bytes_of(meta.dtype, stride) % kVectorBytes == 0)
    return Verdict::yes();
  return Verdict::no(fmt::format("rows of {} are not multiples of {} bytes: {}", name, kVectorBytes, meta.text()));
}

}  // namespace

Verdict runs_on_gpus(const DeviceDescription& device) {
  if (device.id.type != DeviceType::cpu) return Verdict::yes();
  return Verdict::no(fmt::format("runs on cuda and fake-cuda, and the device is {}", device_text(device.id)));
}

Verdict multiplies_codes(const DeviceDescription& device, ProductScales scales) {
  if (const Verdict runs = runs_on_gpus(device); !runs) return runs;
  const std::string refusal =
      refusal_of_scales(scales, device.compute_capability, static_cast<std::size_t>(device.cublaslt));
  return refusal.empty() ? Verdict::yes() : Verdict::no(refusal);
}

Verdict takes_codes(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result) {
  if (x.dtype != DType::f8e4m3) return Verdict::no(fmt::format("takes f8e4m3, not {}", x.text()));
  if (const Verdict matrices = takes_matrices(x, weight, bias, result); !matrices) return matrices;
  if (bias && !is_sixteen_bits(result.dtype))
    return Verdict::no(fmt::format("takes a bias of bf16 or f16, not {}", bias->text()));
  for (const Dim& extent : weight.shape)
    if (extent.number() % kTile != 0)
      return Verdict::no(fmt::format("takes a weight in whole tiles of {}, not {}", kTile, weight.text()));
  if (const Verdict whole = has_whole_rows(x, "x"); !whole) return whole;
  return has_whole_rows(weight, "the weight");  // the result has them: it is contiguous and has whole tiles
}

Verdict takes_matrices(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result) {
  if (!weight.packed.empty()) return Verdict::no("reads plain weights, not " + weight.text());
  if (weight.dtype != x.dtype)
    return Verdict::no(fmt::format("takes a weight of the dtype of x: {}, not {}", x.text(), weight.text()));
  for (const Dim& side : weight.shape)
    if (!side.is_number() || side.number() == 0)
      return Verdict::no(fmt::format("wants a weight of known size, not {}", weight.text()));
  for (const Meta* meta : {&x, &weight})
    if (!has_plain_rows(*meta)) return Verdict::no(fmt::format("wants contiguous rows, not {}", meta->text()));
  if (!result.is_contiguous()) return Verdict::no("the result is not contiguous");
  if (bias && (bias->dtype != result.dtype || !bias->is_contiguous()))
    return Verdict::no(fmt::format("takes a contiguous bias of {}, not {}", dtype_text(result.dtype), bias->text()));
  return Verdict::yes();
}

LibraryProduct product_of(const TensorView& x, const TensorView& weight, const TensorView& bias,
                          const TensorView& result) {
  LibraryProduct product{.x = x.data,
                         .weight = weight.data,
                         .bias = bias.data,
                         .result = result.data,
                         .rows = 1,
                         .columns = weight.size[0],
                         .depth = weight.size[1],
                         .dtype = x.dtype,
                         .result_dtype = result.dtype};
  for (int i = 0; i + 1 < x.rank; ++i) product.rows *= x.size[i];
  // The stride of a single row may be anything.
  product.x_stride = x.rank == 2 && product.rows > 1 ? x.stride[0] : product.depth;
  product.weight_stride = product.columns > 1 ? weight.stride[0] : product.depth;
  product.result_stride = product.columns;
  return product;
}

void run_product(const LibraryProduct& product, const KernelCall& call) {
  if (product.rows == 0) return;
  if (call.queue != nullptr) return call.queue->call_library(kLibraryProduct, std::as_bytes(std::span(&product, 1)));
  std::vector<float> workspace(static_cast<std::size_t>(product.rows * product.depth));
  multiply_on_host(product, workspace);
}

}  // namespace weft::cublaslt
