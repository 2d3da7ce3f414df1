// sum and amax over the last dim.

#include <cmath>
#include <vector>

#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/house_math.h"

namespace weft {
namespace {

// The row of x that result element `index` is made of.
std::vector<float> row_at(const TensorView& x, const std::int64_t* index) {
  std::vector<float> row(static_cast<std::size_t>(x.size[x.rank - 1]));
  std::int64_t start = 0;
  for (int i = 0; i + 1 < x.rank; ++i) start += index[i] * x.stride[i];
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = load_float(x.dtype, x.data, start + static_cast<std::int64_t>(i) * x.stride[x.rank - 1]);
  return row;
}

float largest(const std::vector<float>& row) {
  float result = row.empty() ? -INFINITY : row[0];
  for (float value : row) result = std::isnan(result) || result > value ? result : value;
  return result;
}

template <class Reduce>
void run(const KernelCall& call, Reduce reduce) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    store_float(y.dtype, y.data, element_at(y, index, y.rank), reduce(row_at(x, index)));
  });
}

}  // namespace
}  // namespace weft

KERNELS(reference, reduction) {
  Kernel sum;
  sum.op = "sum";
  sum.provider = "reference";
  sum.run = [](const KernelCall& call) {
    run(call,
        [](const std::vector<float>& row) { return house_row_sum(row.data(), static_cast<std::int64_t>(row.size())); });
  };
  registry.add(std::move(sum));
  Kernel amax;
  amax.op = "amax";
  amax.provider = "reference";
  amax.run = [](const KernelCall& call) { run(call, largest); };
  registry.add(std::move(amax));
}
