#include "codegen/simplify_rows.h"

#include <algorithm>

namespace weft {
namespace {

class Simplification {
 public:
  explicit Simplification(RowProgram& program) : program_(program) {}

  void run() {
    count_uses();
    for (RowValue& value : program_.values) find_silu(value);
    for (RowValue& value : program_.values) find_short_silu(value);
    find_plain_conversions();
    drop_unused();
  }

 private:
  RowValue& at(int id) { return program_.values[static_cast<std::size_t>(id)]; }
  bool is(int id, RowOp op) { return id >= 0 && at(id).op == op; }
  bool is_constant(int id, double number) { return is(id, RowOp::constant) && at(id).number == number; }

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

  // Whether a value is one of those that the dtype has.
  bool is_of(int id, DType dtype) {
    const RowValue& value = at(id);
    if (value.op == RowOp::load) return program_.buffers[static_cast<std::size_t>(value.buffer)].dtype == dtype;
    return value.op == RowOp::convert && value.dtype == dtype;
  }

  // What is known of a value's NaN: whether their lower halves are 0, and whether they are quiet. Arithmetic hands on
  // the pattern of an operand's NaN, or makes one with nothing below its first bit. Half a unit of bf16, added to such
  // a pattern, carries nothing into its upper half.
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
    constexpr RowOp kOps[] = {RowOp::add,          RowOp::sub,
                              RowOp::mul,          RowOp::div,
                              RowOp::exp,          RowOp::tanh,
                              RowOp::erf,          RowOp::sqrt,
                              RowOp::sigmoid,      RowOp::row_sum,
                              RowOp::silu_divisor, RowOp::widen,
                              RowOp::narrow,       RowOp::bf16_silu_divisor};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }

  void drop_unused() {
    std::vector<bool> is_used(program_.values.size(), false);
    for (const RowStore& store : program_.stores) is_used[static_cast<std::size_t>(store.value)] = true;
    for (int id = static_cast<int>(is_used.size()) - 1; id >= 0; --id) {
      if (!is_used[static_cast<std::size_t>(id)]) continue;
      for (const int operand : {at(id).a, at(id).b, at(id).c})
        if (operand >= 0) is_used[static_cast<std::size_t>(operand)] = true;
    }
    std::vector<int> moved(is_used.size(), -1);
    std::vector<RowValue> kept;
    for (std::size_t id = 0; id < is_used.size(); ++id) {
      if (!is_used[id]) continue;
      moved[id] = static_cast<int>(kept.size());
      kept.push_back(program_.values[id]);
      for (int* operand : {&kept.back().a, &kept.back().b, &kept.back().c})
        if (*operand >= 0) *operand = moved[static_cast<std::size_t>(*operand)];
    }
    for (RowStore& store : program_.stores) store.value = moved[static_cast<std::size_t>(store.value)];
    program_.values = std::move(kept);
  }

  RowProgram& program_;
  std::vector<int> uses_;  // by value
};

}  // namespace

void simplify_rows(RowProgram& program) { Simplification(program).run(); }

}  // namespace weft
