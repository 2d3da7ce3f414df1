// sum and amax over a dim.

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

// Returns the elements of x along `axis` that are reduced to result element `index`.
template <class T>
std::vector<T> line_at(const TensorView& x, int axis, const std::int64_t* index) {
  std::int64_t at = 0;
  for (int i = 0; i < x.rank; ++i)
    if (i != axis) at += index[i] * x.stride[i];
  std::vector<T> line;
  for (std::int64_t i = 0; i < x.size[axis]; ++i, at += x.stride[axis])
    line.push_back(
        static_cast<T>(x.dtype == DType::f64 ? load_double(x.dtype, x.data, at) : load_float(x.dtype, x.data, at)));
  return line;
}

struct Sum {
  float operator()(const std::vector<float>& line) const {
    return reference_row_sum(line.data(), static_cast<std::int64_t>(line.size()));
  }
  double operator()(const std::vector<double>& line) const { return std::accumulate(line.begin(), line.end(), 0.0); }
};

// If an element is NaN, the result is NaN. -0 becomes 0, so that the order of 0 and -0 does not matter.
struct Largest {
  template <class T>
  T operator()(const std::vector<T>& line) const {
    T result = line.empty() ? -std::numeric_limits<T>::infinity() : line[0];
    for (T value : line) result = std::isnan(result) || result > value ? result : value;
    return result + T{0};
  }
};

// Reduces one line after another, in f32, or in f64 for f64.
template <class Reduce>
void run(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  const std::int64_t dim = call.attributes.at("dim").integer();
  const int axis = static_cast<int>(dim < 0 ? dim + x.rank : dim);
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const std::int64_t at = element_at(y, index, y.rank);
    if (x.dtype == DType::f64) {
      store_double(y.dtype, y.data, at, Reduce()(line_at<double>(x, axis, index)));
    } else {
      store_float(y.dtype, y.data, at, Reduce()(line_at<float>(x, axis, index)));
    }
  });
}

}  // namespace
}  // namespace weft

KERNELS(reference, reduction) {
  registry.add({.op = "sum", .provider = "reference", .run = run<Sum>});
  registry.add({.op = "amax", .provider = "reference", .run = run<Largest>});
}
