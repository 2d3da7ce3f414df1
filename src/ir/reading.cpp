#include "ir/reading.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

double element(const Tensor& tensor, std::int64_t index) {
  const DType dtype = tensor.meta.dtype;
  return is_floating(dtype) ? load_double(dtype, tensor.data(), index)
                            : static_cast<double>(load_integer(dtype, tensor.data(), index));
}

// Returns the value's contents, row-major.
Tensor plain_tensor(const Value& value, const Reading& reading) {
  const Meta& meta = value.meta();
  USER_CHECK(meta.is_tensor() && !is_block(meta.dtype) && meta.packed.empty(), "[{}] wanted a plain tensor, but is {}",
             reading.what, meta.text());
  return contiguous(value.home().read(value, reading));
}

double only_element(const Value& value, const Reading& reading) {
  const Tensor tensor = plain_tensor(value, reading);
  USER_CHECK(element_count(tensor.meta.shape) == Dim(1), "[{}] wanted one element, but is {}", reading.what,
             tensor.meta.text());
  return element(tensor, 0);
}

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> all(static_cast<std::size_t>(element_count(tensor.meta.shape).number()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = element(tensor, static_cast<std::int64_t>(i));
  return all;
}

}  // namespace

double item(const Value& value, std::source_location where) {
  return placed_at(where, [&] { return only_element(value, {"item()", where}); });
}

bool is_true(const Value& value, std::source_location where) {
  return placed_at(where, [&] { return only_element(value, {"is_true()", where}) != 0; });
}

std::vector<double> numbers(const Value& value, std::source_location where) {
  return placed_at(where, [&] { return elements(plain_tensor(value, {"numbers()", where})); });
}

std::string to_text(const Value& value, std::source_location where) {
  constexpr std::size_t kMostShown = 8;
  const Tensor tensor = placed_at(where, [&] { return plain_tensor(value, {"to_text()", where}); });
  std::vector<double> all = elements(tensor);
  const bool is_cut = all.size() > kMostShown;
  all.resize(std::min(all.size(), kMostShown));
  return fmt::format("{} ({:.6g}{})", tensor.meta.text(), fmt::join(all, ", "), is_cut ? ", ..." : "");
}

bool guard(const Value& value, const DimCondition& condition, std::source_location where) {
  return placed_at(where, [&] { return value.home().decide(condition, {"guard()", where}); });
}

std::int64_t extent(const Value& value, int axis, std::source_location where) {
  return placed_at(where, [&] { return value.home().settle(value.dim(axis), {"extent()", where}); });
}

}  // namespace weft
