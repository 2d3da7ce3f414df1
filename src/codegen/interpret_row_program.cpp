#include "codegen/interpret_row_program.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

double rounded_to(DType dtype, double value) {
  std::array<std::byte, 8> code{};
  store_double(dtype, code.data(), 0, value);
  return load_double(dtype, code.data(), 0);
}

double power_of_two(double a, bool up) {
  if (a == 0 || !std::isfinite(a)) return a;
  int exponent = 0;
  const double fraction = std::frexp(a, &exponent);  // in [0.5, 1)
  return std::copysign(std::ldexp(1.0, up && std::abs(fraction) > 0.5 ? exponent : exponent - 1), a);
}

// The ops whose result is one of their operands.
double chosen(const RowValue& value, double a, double b, double c) {
  switch (value.op) {
    case RowOp::maximum:
      return std::isnan(a) || a > b ? a : b;
    case RowOp::minimum:
      return std::isnan(a) || a < b ? a : b;
    case RowOp::at_least:
      return a < b ? b : a;
    case RowOp::at_most:
      return a > b ? b : a;
    case RowOp::select_at_most:
      return a <= value.number ? b : c;
    case RowOp::replace_nan:
      return std::isnan(a) ? value.number : a;
    case RowOp::replace_zero:
      return a == 0 ? value.number : b;
    default:
      break;
  }
  CHECK(false, "{} is not computed element by element", row_op_text(value.op));
}

double computed(const RowValue& value, double a, double b, double c) {
  switch (value.op) {
    case RowOp::add:
      return a + b;
    case RowOp::sub:
      return a - b;
    case RowOp::mul:
      return a * b;
    case RowOp::div:
    case RowOp::quotient:
    case RowOp::short_quotient:
      return a / b;
    case RowOp::neg:
      return -a;
    case RowOp::abs:
      return std::abs(a);
    case RowOp::exp:
      return std::exp(a);
    case RowOp::tanh:
      return std::tanh(a);
    case RowOp::erf:
      return std::erf(a);
    case RowOp::sigmoid:
    case RowOp::bf16_sigmoid:
      return 1 / (1 + std::exp(-a));
    case RowOp::silu_divisor:
    case RowOp::bf16_silu_divisor:
      return 1 + std::exp(-a);
    case RowOp::sqrt:
      return std::sqrt(a);
    case RowOp::power_of_two_up:
    case RowOp::power_of_two_down:
      return power_of_two(a, value.op == RowOp::power_of_two_up);
    case RowOp::round:
      return std::nearbyint(a);
    case RowOp::trunc:
      return std::trunc(a);
    case RowOp::convert:
      return rounded_to(value.dtype, a);
    case RowOp::widen:
    case RowOp::narrow:
      return a;
    default:
      return chosen(value, a, b, c);
  }
}

class Interpretation {
 public:
  Interpretation(const RowProgram& program, const void* const* buffers) : program_(program), buffers_(buffers) {}

  void run_row(std::int64_t row, std::vector<std::vector<double>>& stored) {
    values_.clear();
    for (const RowValue& value : program_.values) values_.push_back(compute(value, row));
    for (std::size_t i = 0; i < program_.stores.size(); ++i) {
      const RowStore& store = program_.stores[i];
      for (std::int64_t k = 0; k < count_of(store.domain); ++k) stored[i].push_back(at(store.value, k, store.domain));
    }
  }

 private:
  std::int64_t count_of(RowDomain domain) const {
    if (domain == RowDomain::element) return program_.columns;
    return domain == RowDomain::group ? program_.columns / program_.group : 1;
  }

  // Element k of a value that is broadcast to `domain`.
  double at(int id, std::int64_t k, RowDomain domain) const {
    const auto i = static_cast<std::size_t>(id);
    const RowDomain own = program_.values[i].domain;
    if (own <= RowDomain::row) return values_[i][0];
    return values_[i][static_cast<std::size_t>(own == domain ? k : k / program_.group)];
  }

  std::vector<double> compute(const RowValue& value, std::int64_t row) const {
    std::vector<double> made(static_cast<std::size_t>(count_of(value.domain)));
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(made.size()); ++k) {
      double& one = made[static_cast<std::size_t>(k)];
      const auto operand = [&](int id) { return id < 0 ? 0.0 : at(id, k, value.domain); };
      if (value.op == RowOp::constant) {
        one = value.number;
      } else if (value.op == RowOp::load) {
        one = loaded(program_.buffers[static_cast<std::size_t>(value.buffer)], value, row, k);
      } else if (is_row_reduction(value.op)) {
        one = reduced(value, 0, program_.columns);
      } else if (is_group_reduction(value.op)) {
        one = reduced(value, k * program_.group, program_.group);
      } else {
        one = computed(value, operand(value.a), operand(value.b), operand(value.c));
      }
    }
    return made;
  }

  double loaded(const RowBuffer& buffer, const RowValue& value, std::int64_t row, std::int64_t k) const {
    const auto* data = static_cast<const std::byte*>(buffers_[value.buffer]);
    const std::int64_t parts = program_.tuning.parts;
    const std::int64_t begin = row_of(buffer, row / parts) * buffer.row_stride + row % parts * buffer.part_stride;
    return load_double(buffer.dtype, data, begin + buffer.begin + buffer.placement.of(k));
  }

  // The row of the buffer that the program reads in its row `row`: the same row, or a row index from another buffer.
  std::int64_t row_of(const RowBuffer& buffer, std::int64_t row) const {
    if (buffer.numbers < 0) return row;
    const RowBuffer& numbers = program_.buffers[static_cast<std::size_t>(buffer.numbers)];
    const auto* data = static_cast<const std::byte*>(buffers_[buffer.numbers]);
    return static_cast<std::int64_t>(load_double(numbers.dtype, data, row * numbers.row_stride));
  }

  double reduced(const RowValue& value, std::int64_t first, std::int64_t count) const {
    double result = is_sum(value.op) ? 0 : -std::numeric_limits<double>::infinity();
    for (const int operand : {value.a, value.b})
      for (std::int64_t k = first; operand >= 0 && k < first + count; ++k) {
        const double one = at(operand, k, RowDomain::element);
        if (is_sum(value.op)) {
          result += one;
        } else if (!std::isnan(result) && !(result > one)) {
          result = one;
        }
      }
    return result;
  }

  const RowProgram& program_;
  const void* const* buffers_;
  std::vector<std::vector<double>> values_;
};

}  // namespace

std::vector<std::vector<double>> interpret_row_program(const RowProgram& program, const void* const* buffers,
                                                       std::int64_t rows) {
  std::vector<std::vector<double>> stored(program.stores.size());
  Interpretation interpretation(program, buffers);
  for (std::int64_t row = 0; row < rows; ++row) interpretation.run_row(row, stored);
  return stored;
}

}  // namespace weft
