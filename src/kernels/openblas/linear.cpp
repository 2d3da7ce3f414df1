// linear in f32 by OpenBLAS. The order of its sums is its own and depends on the number of rows.

#include <algorithm>
#include <climits>

#include <fmt/core.h>

#include "kernels/openblas/library.h"
#include "kernels/registry.h"
#include "kernels/strided.h"

namespace weft::openblas {
namespace {

// Columns of one slice. The number does not depend on the threads: sums may depend on it, but must not depend on the
// threads.
constexpr std::int64_t kSliceColumns = 128;
// Rows of one call, limited because the library's counts are ints.
constexpr std::int64_t kBlockRows = 512;

Verdict supported(const DeviceDescription& device) {
  return device.id.type == DeviceType::cpu ? Verdict::yes() : Verdict::no("runs on the CPU only");
}

Verdict supports(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[1];
  const std::optional<Meta>& bias = request.operands[2];
  if (!weight.packed.empty()) return Verdict::no("reads plain weights, not " + weight.text());
  for (const Meta* meta : {&x, &weight, &request.results[0]})
    if (meta->dtype != DType::f32) return Verdict::no(fmt::format("takes f32, not {}", meta->text()));
  for (const Dim& dim : weight.shape)
    if (!dim.is_number() || dim.number() == 0 || dim.number() > INT_MAX)
      return Verdict::no(fmt::format("wants a weight whose size is known and fits an int, not {}", weight.text()));
  for (const Meta* meta : {&x, &weight}) {
    if (!has_plain_rows(*meta)) return Verdict::no(fmt::format("wants contiguous rows, not {}", meta->text()));
    if (!meta->is_contiguous() && meta->strides[0].number() > INT_MAX)
      return Verdict::no(fmt::format("wants rows whose distance fits an int, not {}", meta->text()));
  }
  if (!request.results[0].is_contiguous()) return Verdict::no("the result is not contiguous");
  if (bias && (bias->dtype != DType::f32 || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return is_there();
}

// Rows of floats, `stride` elements apart.
struct Rows {
  const float* data;
  std::int64_t stride;
  std::int64_t count;
};

// sums[row, column] = x[row] . weight[column]
void multiply(const Rows& x, const Rows& weight, std::int64_t depth, float* sums, std::int64_t stride) {
  const auto height = static_cast<blasint>(x.count), width = static_cast<blasint>(weight.count);
  // sgemm first copies the weight into panels, which takes five times as long as one row's products.
  if (height == 1)
    library().sgemv(CblasRowMajor, CblasNoTrans, width, static_cast<blasint>(depth), 1.0f, weight.data,
                    static_cast<blasint>(weight.stride), x.data, 1, 0.0f, sums, 1);
  else
    library().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, height, width, static_cast<blasint>(depth), 1.0f, x.data,
                    static_cast<blasint>(x.stride), weight.data, static_cast<blasint>(weight.stride), 0.0f, sums,
                    static_cast<blasint>(stride));
}

void run(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& weight = call.operands[1];
  const TensorView& bias = call.operands[2];
  float* result = call.results[0].as<float>();
  const std::int64_t columns = weight.size[0], depth = weight.size[1];
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.size[i];
  if (rows == 0) return;

  // The stride of a single row may be anything.
  const std::int64_t row_stride = x.rank == 2 && rows > 1 ? x.stride[0] : depth;
  const std::int64_t column_stride = columns > 1 ? weight.stride[0] : depth;
  const std::int64_t slices = (columns + kSliceColumns - 1) / kSliceColumns;
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  call.threads.run(slices * blocks, [&](std::int64_t chunk, int) {
    const std::int64_t first_column = chunk / blocks * kSliceColumns, first_row = chunk % blocks * kBlockRows;
    const std::int64_t width = std::min(kSliceColumns, columns - first_column);
    const std::int64_t height = std::min(kBlockRows, rows - first_row);
    float* sums = result + first_row * columns + first_column;
    multiply({x.as<const float>() + first_row * row_stride, row_stride, height},
             {weight.as<const float>() + first_column * column_stride, column_stride, width}, depth, sums, columns);
    if (!bias.present()) return;
    for (std::int64_t row = 0; row < height; ++row)
      for (std::int64_t column = 0; column < width; ++column)
        sums[row * columns + column] += bias.as<const float>()[first_column + column];
  });
}

}  // namespace
}  // namespace weft::openblas

KERNELS(openblas, linear) {
  Kernel kernel;
  kernel.op = "linear";
  kernel.provider = "openblas";
  kernel.supported = openblas::supported;
  kernel.supports = openblas::supports;
  kernel.batch_invariant = false;
  kernel.run = openblas::run;
  kernel.note =
      "sgemm (one row: sgemv) on slices of 128 columns over the threads; the instruction set is OpenBLAS's choice";
  registry.add(std::move(kernel));
}
