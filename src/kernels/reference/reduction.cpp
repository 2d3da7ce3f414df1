// sum and amax over the last dim.

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/house_math.h"

namespace weft {
namespace {

// The row of x that result element `index` is made of.
template <class T>
std::vector<T> row_at(const TensorView& x, const std::int64_t* index) {
  std::int64_t at = 0;
  for (int i = 0; i + 1 < x.rank; ++i) at += index[i] * x.stride[i];
  std::vector<T> row;
  for (std::int64_t i = 0; i < x.size[x.rank - 1]; ++i, at += x.stride[x.rank - 1])
    row.push_back(
        static_cast<T>(x.dtype == DType::f64 ? load_double(x.dtype, x.data, at) : load_float(x.dtype, x.data, at)));
  return row;
}

struct Sum {
  float operator()(const std::vector<float>& row) const {
    return house_row_sum(row.data(), static_cast<std::int64_t>(row.size()));
  }
  double operator()(const std::vector<double>& row) const { return std::accumulate(row.begin(), row.end(), 0.0); }
};

// NaN wins.
struct Largest {
  template <class T>
  T operator()(const std::vector<T>& row) const {
    T result = row.empty() ? -std::numeric_limits<T>::infinity() : row[0];
    for (T value : row) result = std::isnan(result) || result > value ? result : value;
    return result;
  }
};

// Row by row, in f32; in f64 for f64.
template <class Reduce>
void run(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const std::int64_t at = element_at(y, index, y.rank);
    if (x.dtype == DType::f64) {
      store_double(y.dtype, y.data, at, Reduce()(row_at<double>(x, index)));
    } else {
      store_float(y.dtype, y.data, at, Reduce()(row_at<float>(x, index)));
    }
  });
}

}  // namespace
}  // namespace weft

KERNELS(reference, reduction) {
  Kernel sum;
  sum.op = "sum";
  sum.provider = "reference";
  sum.run = run<Sum>;
  registry.add(std::move(sum));
  Kernel amax;
  amax.op = "amax";
  amax.provider = "reference";
  amax.run = run<Largest>;
  registry.add(std::move(amax));
}
