#include "ir/shape_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace weft {

void require_floating(const Meta& meta, const char* op, const char* parameter) {
  USER_CHECK(meta.is_tensor() && is_floating(meta.dtype), "[{}] {} must be a floating tensor, but is {}", op, parameter,
             meta.text());
}

bool is_one_scale(const Meta& scale) { return scale.rank() <= 1 && element_count(scale.shape) == Dim(1); }

int checked_axis(std::int64_t axis, const Meta& meta, const char* op) {
  const auto rank = static_cast<std::int64_t>(meta.rank());
  USER_CHECK(meta.is_tensor() && axis >= -rank && axis < rank, "[{}] dim must be an axis of {}, but is {}", op,
             meta.text(), axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<Meta> broadcast_rule(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  const Meta& y = request.operand(1);
  require_floating(x, op, "x");
  USER_CHECK(y.is_tensor() && y.dtype == x.dtype, "[{}] y must be of dtype {} as x: {}, but is {}", op,
             dtype_text(x.dtype), x.text(), y.text());
  Shape shape(std::max(x.rank(), y.rank()), Dim(1));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim a = i < x.rank() ? x.shape[x.rank() - 1 - i] : Dim(1);
    const Dim b = i < y.rank() ? y.shape[y.rank() - 1 - i] : Dim(1);
    USER_CHECK(a == b || a == Dim(1) || b == Dim(1), "[{}] y must match x: {} or have 1 in its place, but is {}", op,
               x.text(), y.text());
    shape[shape.size() - 1 - i] = a == Dim(1) ? b : a;
  }
  return {Meta::tensor(x.dtype, std::move(shape))};
}

std::vector<Meta> pointwise_rule(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  require_floating(x, op, "x");
  return {Meta::tensor(x.dtype, x.shape)};
}

std::optional<Shape> view_strides(const Meta& from, const Shape& to) {
  if (from.is_contiguous()) return contiguous_strides(to);
  const Shape old_strides = from.full_strides();
  Shape strides(to.size(), Dim(1));
  std::size_t i = 0, j = 0;
  while (i < from.shape.size() || j < to.size()) {
    // The smallest groups of dims on both sides with equal element counts.
    const std::size_t old_begin = i, new_begin = j;
    Dim old_count = i < from.shape.size() ? from.shape[i++] : Dim(1);
    Dim new_count = j < to.size() ? to[j++] : Dim(1);
    while (!(old_count == new_count)) {
      const bool both_numbers = old_count.is_number() && new_count.is_number();
      const bool grow_new = both_numbers ? new_count.number() < old_count.number() : j < to.size();
      if (grow_new && j < to.size()) {
        new_count = new_count * to[j++];
      } else if (i < from.shape.size()) {
        old_count = old_count * from.shape[i++];
      } else {
        return std::nullopt;
      }
    }
    for (std::size_t k = old_begin; k + 1 < i; ++k)
      if (!(old_strides[k] == old_strides[k + 1] * from.shape[k + 1])) return std::nullopt;
    Dim stride = i > old_begin ? old_strides[i - 1] : Dim(1);
    for (std::size_t k = j; k-- > new_begin;) {
      strides[k] = stride;
      stride = stride * to[k];
    }
  }
  return strides;
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::abs(std::frexp(value, &exponent)) == 0.5;
}

}  // namespace weft
