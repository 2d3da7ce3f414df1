#include "kernels/cublaslt/lib/product_call.h"

#include <vector>

#include <fmt/core.h>

#include "kernels/launch_queue.h"
#include "kernels/strided.h"

namespace weft::cublaslt {

Verdict runs_on_gpus(const DeviceDescription& device) {
  if (device.id.type != DeviceType::cpu) return Verdict::yes();
  return Verdict::no(fmt::format("runs on cuda and fake-cuda, and the device is {}", device_text(device.id)));
}

Verdict takes_matrices(const Meta& x, const Meta& weight, const std::optional<Meta>& bias, const Meta& result) {
  if (!weight.packed.empty()) return Verdict::no("reads plain weights, not " + weight.text());
  if (weight.dtype != x.dtype)
    return Verdict::no(fmt::format("takes a weight of the dtype of x: {}, not {}", x.text(), weight.text()));
  for (const Dim& side : weight.shape)
    if (!side.is_number() || side.number() == 0)
      return Verdict::no(fmt::format("wants a weight of known size, not {}", weight.text()));
  for (const Meta* meta : {&x, &weight})
    if (!has_plain_rows(*meta)) return Verdict::no(fmt::format("wants rows side by side, not {}", meta->text()));
  if (!result.is_contiguous()) return Verdict::no("the result is not contiguous");
  if (bias && (bias->dtype != result.dtype || !bias->is_contiguous()))
    return Verdict::no(fmt::format("takes a bias side by side of {}, not {}", dtype_text(result.dtype), bias->text()));
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
