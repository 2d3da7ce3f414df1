#include "codegen/simplify_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "tensor/bfloat16.h"

namespace weft {
namespace {

class Simplification {
 public:
  explicit Simplification(RowProgram& program) : program_(program) {}

  void run() {
    leave_out_repeated_conversions();
    count_uses();
    for (RowValue& value : program_.values) find_silu(value);
    for (RowValue& value : program_.values) find_short_silu(value);
    for (RowValue& value : program_.values) find_short_sigmoid(value);
    leave_out_conversions_of_bf16();
    find_plain_conversions();
    const int count = static_cast<int>(program_.values.size());
    for (int id = 0; id < count; ++id) find_plain_code(id);
    put_in_order();
  }

 private:
  RowValue& at(int id) { return program_.values[static_cast<std::size_t>(id)]; }
  bool is(int id, RowOp op) { return id >= 0 && at(id).op == op; }
  bool is_constant(int id, double number) { return is(id, RowOp::constant) && at(id).number == number; }

  // A repeated conversion to the same dtype changes nothing: the value is already a number of the dtype, or the NaN
  // that the conversion returns.
  void leave_out_repeated_conversions() {
    std::vector<int> same(program_.values.size());  // the value that replaces it
    for (int id = 0; id < static_cast<int>(same.size()); ++id) {
      RowValue& value = at(id);
      for (int* operand : {&value.a, &value.b, &value.c})
        if (*operand >= 0) *operand = same[static_cast<std::size_t>(*operand)];
      const bool is_repeated =
          value.op == RowOp::convert && is(value.a, RowOp::convert) && at(value.a).dtype == value.dtype;
      same[static_cast<std::size_t>(id)] = is_repeated ? value.a : id;
    }
    for (RowStore& store : program_.stores) store.value = same[static_cast<std::size_t>(store.value)];
  }

  void count_uses() {
    uses_.assign(program_.values.size(), 0);
    for (const RowValue& value : program_.values)
      for (const int operand : {value.a, value.b, value.c})
        if (operand >= 0) ++uses_[static_cast<std::size_t>(operand)];
    for (const RowStore& store : program_.stores) ++uses_[static_cast<std::size_t>(store.value)];
  }

  // x / (exp(-x) + 1)
  void find_silu(RowValue& quotient) {
    if (quotient.op != RowOp::div || quotient.is_wide || !is(quotient.b, RowOp::add)) return;
    const RowValue& sum = at(quotient.b);
    if (!is(sum.a, RowOp::exp) || !is_constant(sum.b, 1) || !is(at(sum.a).a, RowOp::neg)) return;
    if (at(at(sum.a).a).a != quotient.a || uses_[static_cast<std::size_t>(quotient.b)] != 1) return;
    RowValue& divisor = at(quotient.b);
    divisor = {.op = RowOp::silu_divisor, .domain = divisor.domain, .a = quotient.a};
  }

  void find_short_silu(const RowValue& converted) {
    if (converted.op != RowOp::convert || converted.dtype != DType::bf16 || !is(converted.a, RowOp::div)) return;
    const RowValue& quotient = at(converted.a);
    if (!is(quotient.b, RowOp::silu_divisor) || at(quotient.b).a != quotient.a || !is_of(quotient.a, DType::bf16))
      return;
    if (uses_[static_cast<std::size_t>(converted.a)] != 1 || uses_[static_cast<std::size_t>(quotient.b)] != 1) return;
    at(quotient.b).op = RowOp::bf16_silu_divisor;
  }

  void find_short_sigmoid(const RowValue& converted) {
    if (converted.op != RowOp::convert || converted.dtype != DType::bf16 || !is(converted.a, RowOp::sigmoid)) return;
    RowValue& sigmoid = at(converted.a);
    if (uses_[static_cast<std::size_t>(converted.a)] == 1 && is_of(sigmoid.a, DType::bf16))
      sigmoid.op = RowOp::bf16_sigmoid;
  }

  // Whether a value is known to be a number of the dtype.
  bool is_of(int id, DType dtype) {
    const RowValue& value = at(id);
    if (value.op == RowOp::load) return program_.buffers[static_cast<std::size_t>(value.buffer)].dtype == dtype;
    return value.op == RowOp::convert && value.dtype == dtype;
  }

  // Whether a value is a bf16 to which only limits that are bf16, or changes of the sign, were applied. A NaN may be
  // signaling.
  bool stays_bf16(int id) {
    const RowValue& value = at(id);
    if (is_of(id, DType::bf16)) return true;
    const auto number = static_cast<float>(value.number);
    if (value.op == RowOp::constant) return !value.is_wide && bf16_to_f32(f32_to_bf16(number)) == number;
    if (value.op == RowOp::neg || value.op == RowOp::abs) return stays_bf16(value.a);
    const bool is_limit = value.op == RowOp::at_least || value.op == RowOp::at_most;
    return is_limit && stays_bf16(value.a) && stays_bf16(value.b);
  }

  // Whether an operation distinguishes signaling NaNs from quiet ones. Arithmetic returns quiet NaNs, and these codes
  // have no NaN, or at most one for each sign.
  static bool minds_loud_nan(const RowValue& user) {
    constexpr DType kCodes[] = {DType::f8e4m3, DType::f8e4m3fnuz, DType::i8, DType::u8};
    const bool is_code =
        user.op == RowOp::convert && std::find(std::begin(kCodes), std::end(kCodes), user.dtype) != std::end(kCodes);
    return !is_code && !is_arithmetic(user.op);
  }

  // A conversion of such a value to bf16 changes nothing except that a NaN becomes quiet.
  void leave_out_conversions_of_bf16() {
    std::vector<bool> is_seen(program_.values.size(),
                              false);  // whether something that distinguishes signaling NaNs reads it
    for (const RowStore& store : program_.stores) is_seen[static_cast<std::size_t>(store.value)] = true;
    for (const RowValue& value : program_.values)
      for (const int operand : {value.a, value.b, value.c})
        if (operand >= 0 && minds_loud_nan(value)) is_seen[static_cast<std::size_t>(operand)] = true;
    for (RowValue& value : program_.values)
      for (int* operand : {&value.a, &value.b, &value.c}) {
        if (*operand < 0) continue;
        const RowValue& converted = at(*operand);
        if (converted.op != RowOp::convert || converted.dtype != DType::bf16) continue;
        if (is_seen[static_cast<std::size_t>(*operand)] || !stays_bf16(converted.a)) continue;
        if (--uses_[static_cast<std::size_t>(*operand)] > 0) ++uses_[static_cast<std::size_t>(converted.a)];
        *operand = converted.a;
      }
  }

  // What is known about the NaNs that a value may be: whether the lower halves of their bits are 0, and whether they
  // are quiet. Arithmetic returns the bits of an operand's NaN, or a NaN in which only the first bit of the fraction is
  // set. Adding half a unit of bf16 to such bits does not carry into the upper half.
  struct Nan {
    bool is_short = false;
    bool is_quiet = false;
  };

  void find_plain_conversions() {
    std::vector<Nan> known;
    for (RowValue& value : program_.values) {
      Nan nan{true, true};
      for (const int operand : {value.a, value.b, value.c}) {
        if (operand < 0) continue;
        const Nan& from = known[static_cast<std::size_t>(operand)];
        nan.is_short = nan.is_short && from.is_short;
        nan.is_quiet = nan.is_quiet && from.is_quiet;
      }
      if (value.op == RowOp::convert) {
        value.is_plain = value.dtype == DType::bf16 && nan.is_short && nan.is_quiet;
        nan.is_short = nan.is_quiet = value.dtype == DType::bf16;
      } else if (value.op == RowOp::load) {
        nan = {program_.buffers[static_cast<std::size_t>(value.buffer)].dtype == DType::bf16, false};
      } else if (is_arithmetic(value.op)) {
        nan.is_quiet = true;
      }
      known.push_back(nan);
    }
  }

  static bool is_arithmetic(RowOp op) {
    constexpr RowOp kOps[] = {RowOp::add,          RowOp::sub,     RowOp::mul,       RowOp::div,
                              RowOp::exp,          RowOp::tanh,    RowOp::erf,       RowOp::sqrt,
                              RowOp::sigmoid,      RowOp::row_sum, RowOp::group_sum, RowOp::group_sum_of_halves,
                              RowOp::silu_divisor, RowOp::widen,   RowOp::narrow,    RowOp::bf16_silu_divisor,
                              RowOp::bf16_sigmoid};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }

  // A number that is at least `least`, and at least `ratio` times the magnitude of another value; or infinity or NaN.
  struct Scale {
    double least = 0;
    double ratio = 1;
  };
  // Within these limits row_quotient leads to the same codes as the exact division.
  static constexpr double kLeastScale = 0x1p-43, kLargestLeastScale = 0x1p100;
  static constexpr double kLeastRatio = 0x1p-60, kLargestRatio = 0.25;

  // Returns bounds of a value relative to the magnitude of `a`, if it is computed from the maximum of the magnitudes.
  std::optional<Scale> scale_of(int id, int a) {
    const RowValue& value = at(id);
    if (value.op == RowOp::group_max || value.op == RowOp::row_max)
      return is(value.a, RowOp::abs) && at(value.a).a == a ? std::optional(Scale()) : std::nullopt;
    if (!is(value.b, RowOp::constant) || value.is_wide) return std::nullopt;
    std::optional<Scale> scale = scale_of(value.a, a);
    const double number = at(value.b).number;
    if (!scale || !(number >= 0)) return std::nullopt;
    if (value.op == RowOp::at_least) return Scale{std::max(scale->least, number), scale->ratio};
    if (value.op == RowOp::div) return Scale{scale->least / number, scale->ratio / number};
    if (value.op == RowOp::mul) return Scale{scale->least * number, scale->ratio * number};
    return std::nullopt;
  }

  // The value `from` that becomes codes, and the rounding and limits that are applied to it first, in any order.
  // Nothing else uses their results.
  struct Code {
    int from = -1;
    bool is_rounded = false;
    double low = -std::numeric_limits<double>::infinity(), high = -low;
  };
  Code code_of(const RowValue& converted) {
    Code code{.from = converted.a};
    for (; uses_[static_cast<std::size_t>(code.from)] == 1; code.from = at(code.from).a) {
      const RowValue& value = at(code.from);
      const bool is_limit = is(value.b, RowOp::constant) && std::floor(at(value.b).number) == at(value.b).number;
      if (value.op == RowOp::round) {
        code.is_rounded = true;
      } else if (value.op == RowOp::at_least && is_limit) {
        code.low = std::max(code.low, at(value.b).number);
      } else if (value.op == RowOp::at_most && is_limit) {
        code.high = std::min(code.high, at(value.b).number);
      } else {
        break;
      }
    }
    return code;
  }

  // Makes a conversion to codes plain if the value is known to be within the limits. Replaces a division by a quotient
  // if only codes use it.
  void find_plain_code(int id) {
    const bool is_i8 = at(id).dtype == DType::i8;
    if (at(id).op == RowOp::convert && at(id).dtype == DType::f4e2m1) return leave_out_limits_of_f4(id);
    const bool is_f8 = at(id).dtype == DType::f8e4m3;
    if (at(id).op != RowOp::convert || !(is_i8 || is_f8)) return;
    if (!is_f8 && at(id).domain != RowDomain::element) return;
    const Code code = code_of(at(id));
    const bool is_plain = code.is_rounded == is_i8;
    const double limit = is_i8 ? 127 : 448;
    if (const auto scale = make_quotient(code.from);
        scale && is_plain && limit * (1 + 0x1p-20) >= 1 / scale->ratio && code.low <= -limit && code.high >= limit) {
      at(id).a = code.from;
    } else if (is_plain && code.low >= -limit - is_i8 && code.high <= limit && code.low < code.high &&
               (is_i8 || has_quiet_nan(code.from))) {
      leave_out_round(id, code.from);
    } else {
      return;
    }
    at(id).is_plain = true;
  }

  // The conversion to f4e2m1 limits values by itself.
  void leave_out_limits_of_f4(int id) {
    constexpr double kLargest = 6;
    const Code code = code_of(at(id));
    if (!code.is_rounded && code.low <= -kLargest && code.high >= kLargest) at(id).a = code.from;
    leave_out_sum_with_0(id);
  }

  // Adding 0 changes -0 to 0 and nothing else. The plain conversion does that by itself.
  void leave_out_sum_with_0(int id) {
    const RowValue& sum = at(at(id).a);
    if (at(id).domain != RowDomain::element || sum.op != RowOp::add || !is_constant(sum.b, 0)) return;
    if (std::signbit(at(sum.b).number) || !has_quiet_nan(sum.a)) return;
    at(id).a = sum.a;
    at(id).is_plain = true;
  }

  // Limits return a NaN unchanged.
  bool has_quiet_nan(int id) {
    const RowValue& value = at(id);
    const bool is_limited = value.op == RowOp::at_least || value.op == RowOp::at_most;
    if (is_limited && is(value.b, RowOp::constant)) return has_quiet_nan(value.a);
    if (value.op == RowOp::convert && value.dtype == DType::bf16) return true;
    return is_arithmetic(value.op) || value.op == RowOp::quotient || value.op == RowOp::short_quotient;
  }

  // Removes the roundings between the value and `last`, which it is computed from.
  void leave_out_round(int id, int last) {
    while (at(id).a != last)
      if (is(at(id).a, RowOp::round)) {
        at(id).a = at(at(id).a).a;
      } else {
        id = at(id).a;
      }
  }

  // Replaces a / scale by a quotient that is exact enough only for codes. Returns the scale if it did.
  std::optional<Scale> make_quotient(int id) {
    const RowValue division = at(id);
    if (division.op != RowOp::div || division.is_wide || uses_[static_cast<std::size_t>(id)] != 1 ||
        at(division.b).domain == RowDomain::element)
      return std::nullopt;
    const std::optional<Scale> scale = scale_of(division.b, division.a);
    const bool is_ordinary = scale && scale->least >= kLeastScale && scale->least <= kLargestLeastScale &&
                             scale->ratio >= kLeastRatio && scale->ratio <= kLargestRatio;
    if (!is_ordinary) return std::nullopt;
    const bool is_short = is_of(division.a, DType::bf16) || is_of(division.a, DType::f16);
    const auto added = [&](RowValue value) {
      before_[id].push_back(program_.add(value));
      return before_[id].back();
    };
    const int one = added({.op = RowOp::constant, .number = 1});
    const int inverse = added({.op = RowOp::div, .a = one, .b = division.b});
    const int most = added({.op = RowOp::constant, .number = std::numeric_limits<float>::max()});
    const int finite = added({.op = RowOp::at_most, .a = division.b, .b = most});
    at(id) = {.op = is_short ? RowOp::short_quotient : RowOp::quotient,
              .domain = division.domain,
              .a = division.a,
              .b = finite,
              .c = inverse};
    return scale;
  }

  // Also removes values without users.
  void put_in_order() {
    std::vector<int> order;
    for (int id = 0; id < static_cast<int>(uses_.size()); ++id) {
      for (const int added : before_[id]) order.push_back(added);
      order.push_back(id);
    }
    std::vector<bool> is_used(order.size(), false);
    for (const RowStore& store : program_.stores) is_used[static_cast<std::size_t>(store.value)] = true;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!is_used[static_cast<std::size_t>(*id)]) continue;
      for (const int operand : {at(*id).a, at(*id).b, at(*id).c})
        if (operand >= 0) is_used[static_cast<std::size_t>(operand)] = true;
    }
    std::vector<int> moved(order.size(), -1);
    std::vector<RowValue> kept;
    for (const int id : order) {
      if (!is_used[static_cast<std::size_t>(id)]) continue;
      moved[static_cast<std::size_t>(id)] = static_cast<int>(kept.size());
      kept.push_back(at(id));
      for (int* operand : {&kept.back().a, &kept.back().b, &kept.back().c})
        if (*operand >= 0) *operand = moved[static_cast<std::size_t>(*operand)];
    }
    for (RowStore& store : program_.stores) store.value = moved[static_cast<std::size_t>(store.value)];
    program_.values = std::move(kept);
  }

  RowProgram& program_;
  std::vector<int> uses_;                   // by value, without added ones
  std::map<int, std::vector<int>> before_;  // added values, by the value that they precede
};

}  // namespace

void simplify_rows(RowProgram& program) { Simplification(program).run(); }

}  // namespace weft
