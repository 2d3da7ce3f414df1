// Ops that choose experts and order rows by them: topk, take_along_dim, moe_sort.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "kernels/registry.h"
#include "kernels/strided.h"

namespace weft {
namespace {

bool is_larger(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// The indices of the `count` largest values, the largest first; of equal values, the lower index first.
std::vector<std::int32_t> largest(const std::vector<double>& values, std::int64_t count) {
  std::vector<std::int32_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto is_before = [&](std::int32_t i, std::int32_t j) {
    const double a = values[static_cast<std::size_t>(i)], b = values[static_cast<std::size_t>(j)];
    return is_larger(a, b) || (!is_larger(b, a) && i < j);
  };
  std::partial_sort(indices.begin(), indices.begin() + count, indices.end(), is_before);
  indices.resize(static_cast<std::size_t>(count));
  return indices;
}

struct Groups {
  std::int64_t count, used, top;
};

// For each group, whether it is one of the best.
std::vector<bool> used_groups(const std::vector<double>& row, const Groups& groups) {
  const std::int64_t width = static_cast<std::int64_t>(row.size()) / groups.count;
  std::vector<double> scores;
  for (std::int64_t group = 0; group < groups.count; ++group) {
    const std::vector<double> elements(row.begin() + group * width, row.begin() + (group + 1) * width);
    float score = 0;
    for (const std::int32_t i : largest(elements, groups.top))
      score += static_cast<float>(elements[static_cast<std::size_t>(i)]);
    scores.push_back(score);
  }
  std::vector<bool> used(static_cast<std::size_t>(groups.count));
  for (const std::int32_t group : largest(scores, groups.used)) used[static_cast<std::size_t>(group)] = true;
  return used;
}

// The indices of the row's largest elements among those of the used groups.
std::vector<std::int32_t> chosen_of(const std::vector<double>& row, std::int64_t count, const Groups& groups) {
  if (groups.used == groups.count) return largest(row, count);
  const std::vector<bool> used = used_groups(row, groups);
  const std::int64_t width = static_cast<std::int64_t>(row.size()) / groups.count;
  std::vector<double> candidates;
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!used[i / static_cast<std::size_t>(width)]) continue;
    candidates.push_back(row[i]);
    indices.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> chosen;
  for (const std::int32_t i : largest(candidates, count)) chosen.push_back(indices[static_cast<std::size_t>(i)]);
  return chosen;
}

void topk(const KernelCall& call) {
  const TensorView &x = call.operands[0], &values = call.results[0], &indices = call.results[1];
  const int last = x.rank - 1;
  const std::int64_t k = call.attributes.at("k").integer();
  const Groups groups{call.attributes.at("groups").integer(), call.attributes.at("used_groups").integer(),
                      call.attributes.at("group_top").integer()};
  std::vector<double> row(static_cast<std::size_t>(x.size[last]));
  for_each_index(x.size, last, [&](const std::int64_t* index) {
    std::int64_t from = 0, to = 0, to_index = 0;
    for (int i = 0; i < last; ++i) {
      from += index[i] * x.stride[i];
      to += index[i] * values.stride[i];
      to_index += index[i] * indices.stride[i];
    }
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = load_double(x.dtype, x.data, from + static_cast<std::int64_t>(i) * x.stride[last]);
    const std::vector<std::int32_t> chosen = chosen_of(row, k, groups);
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int32_t at = chosen[static_cast<std::size_t>(i)];
      store_double(values.dtype, values.data, to + i * values.stride[last], row[static_cast<std::size_t>(at)]);
      indices.as<std::int32_t>()[to_index + i * indices.stride[last]] = at;
    }
  });
}

void take_along_dim(const KernelCall& call) {
  const TensorView &x = call.operands[0], &indices = call.operands[1], &y = call.results[0];
  const std::int64_t dim = call.attributes.at("dim").integer();
  const int axis = static_cast<int>(dim < 0 ? dim + x.rank : dim);
  for_each_index(y.size, y.rank, [&](const std::int64_t* at) {
    const std::int64_t chosen = load_integer(indices.dtype, indices.data, element_at(indices, at, y.rank));
    USER_CHECK(chosen >= 0 && chosen < x.size[axis], "[take_along_dim] index {} is outside [0, {})", chosen,
               x.size[axis]);
    std::int64_t from = 0;
    for (int i = 0; i < x.rank; ++i) from += (i == axis ? chosen : at[i]) * x.stride[i];
    store_double(y.dtype, y.data, element_at(y, at, y.rank), load_double(x.dtype, x.data, from));
  });
}

void moe_sort(const KernelCall& call) {
  const TensorView& indices = call.operands[0];
  const TensorView &tokens = call.results[0], &experts = call.results[1], &positions = call.results[2];
  const std::int64_t k = indices.size[1], rows = indices.size[0] * k;
  const auto expert_of = [&](std::int64_t pair) {
    return load_integer(indices.dtype, indices.data, pair / k * indices.stride[0] + pair % k * indices.stride[1]);
  };
  std::vector<std::int32_t> pairs(static_cast<std::size_t>(rows));
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](std::int32_t a, std::int32_t b) { return expert_of(a) < expert_of(b); });
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t pair = pairs[static_cast<std::size_t>(row)];
    tokens.as<std::int32_t>()[row] = static_cast<std::int32_t>(pair / k);
    experts.as<std::int32_t>()[row] = static_cast<std::int32_t>(expert_of(pair));
    positions.as<std::int32_t>()[pair] = static_cast<std::int32_t>(row);
  }
}

}  // namespace
}  // namespace weft

KERNELS(reference, experts) {
  registry.add({.op = "topk", .provider = "reference", .run = topk});
  registry.add({.op = "take_along_dim", .provider = "reference", .run = take_along_dim});
  registry.add({.op = "moe_sort", .provider = "reference", .run = moe_sort});
}
