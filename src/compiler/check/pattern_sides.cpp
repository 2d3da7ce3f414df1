#include "compiler/check/pattern_sides.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "compiler/check/edge_values.h"
#include "compiler/check/tensor_difference.h"
#include "compiler/run/interpret.h"
#include "compiler/run/sample_call.h"
#include "tensor/convert.h"
#include "tensor/same_elements.h"

namespace weft {
namespace {

bool is_exact_value(const GraphValue* value, std::set<const Node*>& seen) {
  const Node* node = value == nullptr ? nullptr : value->producer;
  if (node == nullptr || !seen.insert(node).second) return true;
  return node->op->is_exact(node->attributes) &&
         std::all_of(node->operands.begin(), node->operands.end(),
                     [&](const GraphValue* operand) { return is_exact_value(operand, seen); });
}

// Twice the least number above 0: what two roundings to a subnormal number can be apart by.
double least_step(DType dtype) {
  if (dtype == DType::f64) return 0x1p-1073;
  if (dtype == DType::f32) return 0x1p-148;
  if (dtype == DType::f16) return 0x1p-23;
  return dtype == DType::bf16 ? 0x1p-132 : 0;
}

bool is_within(double wanted, double came, Tolerance tolerance) {
  if (wanted == came) return wanted != 0 || std::signbit(wanted) == std::signbit(came);
  return std::isfinite(wanted) && std::abs(wanted - came) <= tolerance.absolute + tolerance.relative * std::abs(wanted);
}

// The first element that differs; -1 if none does.
std::int64_t first_differing_element(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact) {
  const DType dtype = element_dtype(wanted);
  const std::int64_t count = stored_elements(wanted);
  if (is_block(dtype)) {
    const std::int64_t bytes = bytes_of(dtype, count);
    const auto [left, right] = std::mismatch(wanted.data(), wanted.data() + bytes, came.data());
    return left == wanted.data() + bytes
               ? -1
               : (left - wanted.data()) / dtype_info(dtype).block_bytes * dtype_info(dtype).block_elements;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_same_element(dtype, wanted.data(), came.data(), i)) continue;
    const double a = load_double(dtype, wanted.data(), i), b = load_double(dtype, came.data(), i);
    if (dtype == DType::boolean && a == b) continue;
    const bool is_wide = !is_floating(dtype);  // a double cannot hold all of i64, and the bits differ
    if (exact || (is_wide && a == b) || !is_within(a, b, tolerance)) return i;
  }
  return -1;
}

// The element of `tensor` that an elementwise op would read for element `at` of a result; nothing if the shape does
// not spread to that of the result.
std::optional<std::int64_t> element_for(const Tensor& tensor, const Shape& result, std::int64_t at) {
  const Shape& shape = tensor.meta.shape;
  if (!tensor.meta.is_tensor() || shape.size() > result.size()) return std::nullopt;
  std::int64_t element = 0, stride = 1;
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const std::int64_t size = result[result.size() - i].number(), index = at % size;
    at /= size;
    if (i > shape.size()) continue;
    const std::int64_t own = shape[shape.size() - i].number();
    if (own != size && own != 1) return std::nullopt;
    element += (own == 1 ? 0 : index) * stride;
    stride *= own;
  }
  return element;
}

// The first elements of a row, and its largest and smallest magnitudes, NaN first.
std::string row_text(const Tensor& tensor, std::int64_t begin, std::int64_t width) {
  constexpr std::int64_t kShown = 4;
  std::string text;
  for (std::int64_t i = 0; i < std::min(width, kShown); ++i)
    text += (i == 0 ? "" : ", ") + element_text(tensor, begin + i);
  if (width <= kShown) return text;
  const auto magnitude = [&](std::int64_t i) {
    const double value = std::abs(load_double(element_dtype(tensor), tensor.data(), begin + i));
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  std::int64_t largest = 0, smallest = 0;
  for (std::int64_t i = 1; i < width; ++i) {
    if (magnitude(i) > magnitude(largest)) largest = i;
    if (magnitude(i) < magnitude(smallest)) smallest = i;
  }
  return fmt::format("{}, ..; largest {} at {}, smallest {} at {}", text, element_text(tensor, begin + largest),
                     largest, element_text(tensor, begin + smallest), smallest);
}

}  // namespace

PatternSides::PatternSides(const Pattern& pattern, std::shared_ptr<Graph> before, std::shared_ptr<Graph> after,
                           bool exact)
    : pattern_(pattern), before_(std::move(before)), after_(std::move(after)) {
  for (std::size_t i = 0; i < before_->results().size(); ++i) {
    std::set<const Node*> seen;
    is_exact_.push_back(exact ||
                        (is_exact_value(before_->results()[i], seen) && is_exact_value(after_->results()[i], seen)));
  }
}

int PatternSides::exact_results() const {
  return static_cast<int>(std::count(is_exact_.begin(), is_exact_.end(), true));
}

std::optional<SideDifference> PatternSides::difference_on(Evaluator& evaluator, const std::vector<Tensor>& inputs,
                                                          double scale) const {
  const Values wanted = run_graph(*before_, evaluator, values_of(evaluator, inputs));
  Values came;
  try {
    came = run_graph(*after_, evaluator, values_of(evaluator, inputs));
  } catch (const UserError& error) {
    return SideDifference{.text = fmt::format("cannot be computed: {}", error.what())};
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Tensor a = contiguous(wanted[i].tensor()), b = contiguous(came[i].tensor());
    if (a.meta.kind != b.meta.kind || a.meta.shape != b.meta.shape || element_dtype(a) != element_dtype(b) ||
        a.meta.kv != b.meta.kv)
      return SideDifference{.result = i, .text = fmt::format("is {} instead of {}", b.meta.text(), a.meta.text())};
    const PatternNode& giver = pattern_.before.nodes[static_cast<std::size_t>(pattern_.before.results[i].node)];
    Tolerance tolerance = giver.op->tolerance(element_dtype(a));
    if (scale < 1)
      tolerance.absolute =
          std::min(tolerance.absolute, std::max(tolerance.absolute * scale, least_step(element_dtype(a))));
    const std::int64_t at = first_differing_element(a, b, tolerance, is_exact_[i]);
    if (at < 0) continue;
    return SideDifference{.result = i,
                          .element = at,
                          .shape = a.meta.shape,
                          .text = fmt::format("element {} of {} is {} instead of {}", at, a.meta.text(),
                                              element_text(b, at), element_text(a, at))};
  }
  return std::nullopt;
}

std::string element_text(const Tensor& tensor, std::int64_t element) {
  const DType dtype = element_dtype(tensor);
  if (is_floating(dtype) && std::isnan(load_double(dtype, tensor.data(), element))) return "nan";
  if (dtype == DType::f64) return fmt::format("{}", load_double(dtype, tensor.data(), element));
  if (is_floating(dtype) || is_block(dtype)) return fmt::format("{}", load_float(dtype, tensor.data(), element));
  return fmt::format("{}", load_integer(dtype, tensor.data(), element));
}

std::string inputs_text(const Pattern& pattern, const std::vector<Tensor>& values, const SideDifference& difference,
                        bool is_uniform) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor& tensor = values[i];
    if (!tensor.defined() || !tensor.meta.is_tensor()) continue;
    text += fmt::format("{}?{}", text.empty() ? "" : ", ", pattern.wildcards[i].name);
    if (stored_elements(tensor) == 0) text += " is empty";
    if (stored_elements(tensor) == 0) continue;
    const auto at = element_for(tensor, difference.shape, difference.element);
    const std::int64_t width = tensor.meta.rank() == 0 ? 1 : tensor.meta.shape.back().number();
    if (at) {
      text += fmt::format(" is {}", element_text(tensor, *at));
      if (width > 1 && is_uniform) text += " everywhere";
      if (width > 1 && !is_uniform)
        text += fmt::format(" there, in the row {}", row_text(tensor, *at / width * width, width));
      continue;
    }
    // The row with the same index, where there are as many.
    const std::int64_t rows = stored_elements(tensor) / width;
    const std::int64_t result_width = difference.shape.empty() ? 1 : difference.shape.back().number();
    const std::int64_t row = std::min(difference.element / std::max<std::int64_t>(result_width, 1), rows - 1);
    text += fmt::format(" has the row {}: {}", row, row_text(tensor, row * width, width));
  }
  return text;
}

std::optional<std::vector<Tensor>> uniform_values(const std::vector<Tensor>& values, const std::vector<bool>& is_fixed,
                                                  const SideDifference& difference) {
  std::vector<Tensor> uniform = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor& tensor = values[i];
    if (!tensor.defined() || is_fixed[i]) continue;
    const auto at = element_for(tensor, difference.shape, difference.element);
    if (!at || is_block(tensor.meta.dtype)) return std::nullopt;
    uniform[i] = copy_of(tensor);
    const DType dtype = tensor.meta.dtype;
    const bool has_bytes = dtype_info(dtype).block_elements == 1;
    for (std::int64_t element = 0; element < stored_elements(tensor); ++element) {
      if (has_bytes)
        std::memcpy(uniform[i].data() + element * bytes_of(dtype, 1), tensor.data() + *at * bytes_of(dtype, 1),
                    static_cast<std::size_t>(bytes_of(dtype, 1)));
      else
        store_double(dtype, uniform[i].data(), element, load_double(dtype, tensor.data(), *at));
    }
  }
  return uniform;
}

}  // namespace weft
