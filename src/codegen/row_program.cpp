#include "codegen/row_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "codegen/short_ways.h"
#include "tensor/arithmetic_cost.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

struct RowOpFacts {
  std::string_view text;
  int operands;
  int cost;  // tensor/arithmetic_cost.h
};

constexpr RowOpFacts kRowOps[] = {
    {"load", 0, 1},
    {"constant", 0, 0},
    {"add", 2, 1},
    {"sub", 2, 1},
    {"mul", 2, 1},
    {"div", 2, kDivisionCost},
    {"maximum", 2, 2},
    {"minimum", 2, 2},
    {"at_least", 2, 1},
    {"at_most", 2, 1},
    {"neg", 1, 1},
    {"abs", 1, 1},
    {"exp", 1, kExpCost},
    {"tanh", 1, kTanhCost},
    {"erf", 1, kErfCost},
    {"sigmoid", 1, kSigmoidCost},
    {"silu_divisor", 1, 14},
    {"bf16_silu_divisor", 1, 8},
    {"bf16_sigmoid", 1, 14 + kDivisionCost},
    {"quotient", 3, 5},
    {"short_quotient", 3, 3},
    {"sqrt", 1, kSquareRootCost},
    {"power_of_two_up", 1, 12},
    {"power_of_two_down", 1, 10},
    {"round", 1, 1},
    {"trunc", 1, 1},
    {"convert", 1, kConversionCost},
    {"widen", 1, 1},
    {"narrow", 1, 1},
    {"select_at_most", 3, 2},
    {"replace_nan", 1, 2},
    {"replace_zero", 2, 2},
    {"row_sum", 1, 0},
    {"row_max", 1, 0},
    {"row_signed_max", 1, 0},
    {"group_sum", 1, 0},
    {"group_sum_of_halves", 2, 0},
    {"group_max", 1, 0},
};

const RowOpFacts& facts_of(RowOp op) { return kRowOps[static_cast<std::size_t>(op)]; }

// A value of at most this cost is computed again in a later level instead of being kept in scratch, since loading a
// float takes as long.
constexpr int kRecomputedCost = 2;

// The limit of costs, which is large enough to compare them. A value that is added to itself again and again would
// otherwise double its cost each time.
constexpr int kMostCost = 1 << 16;

// The last level in which each value is computed; -1 for never. A level computes a value again if it needs it and the
// value is not in scratch.
class LastLevels {
 public:
  explicit LastLevels(const RowProgram& program) : program_(program), last_(program.values.size(), -1) {
    for (const RowStore& store : program.stores) want(store.value, at(store.value).level);
    for (std::size_t id = 0; id < program.values.size(); ++id) {
      const RowValue& value = program.values[id];
      if (is_reduction(value.op))
        for (const int operand : {value.a, value.b})
          if (operand >= 0) want(operand, value.level - 1);
      if (value.slot >= 0) want(static_cast<int>(id), value.level);
    }
  }
  int of(int id) const { return last_[static_cast<std::size_t>(id)]; }

 private:
  const RowValue& at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  void want(int id, int level) {
    const RowValue& value = at(id);
    if (value.slot >= 0 && value.level < level) return;
    if (value.domain <= RowDomain::row) level = value.level;
    int& last = last_[static_cast<std::size_t>(id)];
    if (last >= level) return;
    last = level;
    if (is_reduction(value.op)) return;
    for (const int operand : {value.a, value.b, value.c})
      if (operand >= 0) want(operand, level);
  }

  const RowProgram& program_;
  std::vector<int> last_;
};

// Whether element (row, column) has index row * columns + column.
bool lies_plainly(const RowBuffer& buffer, std::int64_t columns) {
  return buffer.row_stride == columns && buffer.numbers < 0 && buffer.begin == 0 && buffer.placement == RowPlacement();
}

// Whether columns are computed in pairs of vectors. Two adjacent bf16 are the halves of one word. Extracting each half
// takes one operation, and joining two halves takes fewer operations than narrowing a vector. All elements that are
// read and written must be bf16 or one byte wide and form whole pairs of vectors. A pair may contain two groups, but
// sums of groups need whole vectors.
bool comes_in_pairs(const RowProgram& program) {
  const bool has_halves = program.group == kPairedColumns / 2;
  bool has_bf16 = false, fits = program.columns % kPairedColumns == 0;
  fits = fits && (has_halves || program.group % kPairedColumns == 0);
  const auto look_at = [&](RowDomain domain, DType dtype, const RowPlacement& placement) {
    if (domain != RowDomain::element) return;
    has_bf16 = has_bf16 || dtype == DType::bf16;
    const DTypeInfo& facts = dtype_info(dtype);
    fits = fits && (dtype == DType::bf16 || facts.block_bytes == 1) && placement.stride == 1 &&
           placement.run % kPairedColumns == 0;
  };
  const auto buffer = [&](int id) -> const RowBuffer& { return program.buffers[static_cast<std::size_t>(id)]; };
  for (const RowValue& value : program.values) {
    if (value.op == RowOp::load) look_at(value.domain, buffer(value.buffer).dtype, buffer(value.buffer).placement);
    fits = fits && !(has_halves && is_group_reduction(value.op) && is_sum(value.op));
  }
  for (const RowStore& store : program.stores) look_at(store.domain, buffer(store.buffer).dtype, store.placement);
  return has_bf16 && fits;
}

// Sets RowBuffer::over. An output may overwrite an input if each element of the input is read for the last time before
// or in the block of columns that writes its location (emit.h).
void find_overwritten(RowProgram& program) {
  const LastLevels last(program);
  std::vector<int> loads(program.buffers.size(), -1);  // by buffer: its only load of elements; -1: no load; -2: others
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const RowValue& value = program.values[id];
    if (value.op != RowOp::load) continue;
    int& load = loads[static_cast<std::size_t>(value.buffer)];
    load = load == -1 && value.domain == RowDomain::element ? static_cast<int>(id) : -2;
  }
  std::vector<bool> is_taken(program.buffers.size(), false);
  for (const RowStore& store : program.stores) {
    RowBuffer& output = program.buffers[static_cast<std::size_t>(store.buffer)];
    const auto fills = [&](const RowStore& other) { return other.buffer == store.buffer; };
    if (store.domain != RowDomain::element || store.offset != 0 || !(store.placement == RowPlacement()) ||
        !lies_plainly(output, program.columns) ||
        std::count_if(program.stores.begin(), program.stores.end(), fills) != 1)
      continue;
    const int written = program.values[static_cast<std::size_t>(store.value)].level;
    // The residual is the last input. If it is overwritten, it has the same address in all layers.
    for (std::size_t i = loads.size(); i-- > 0 && output.over < 0;) {
      const RowBuffer& input = program.buffers[i];
      if (loads[i] < 0 || is_taken[i] || input.dtype != output.dtype || !lies_plainly(input, program.columns) ||
          last.of(loads[i]) > written)
        continue;
      output.over = static_cast<int>(i);
      is_taken[i] = true;
    }
  }
}

// Finds values of elements that can reuse the slot of another value, so that a row needs less of the first-level cache.
// They must depend on the last reads of that value, in the block of columns that reads it (emit.h).
class SlotSharing {
 public:
  explicit SlotSharing(const RowProgram& program) : program_(program), last_(program) {}

  // Returns the value whose slot `id` reuses; -1 for none. Each value is returned at most once.
  int taken_by(int id) {
    if (!waits(at(id))) return -1;
    for (int other = 0; other < id; ++other) {
      if (!waits(at(other)) || at(other).level >= at(id).level || is_taken_.contains(other)) continue;
      if (!is_last_read_for(id, other)) continue;
      is_taken_.insert(other);
      return other;
    }
    return -1;
  }

 private:
  const RowValue& at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  static bool waits(const RowValue& value) { return value.slot >= 0 && value.domain == RowDomain::element; }

  // Whether no level after that of `id` reads `other`, and all that reads it in that level is used for `id`. Then `id`
  // is computed after all these reads.
  bool is_last_read_for(int id, int other) const {
    for (int user = 0; user < static_cast<int>(program_.values.size()); ++user) {
      const RowValue& value = at(user);
      if (value.a != other && value.b != other && value.c != other) continue;
      const int last = is_reduction(value.op) ? value.level - 1 : last_.of(user);
      if (last > at(id).level || (last == at(id).level && !goes_into(user, id))) return false;
    }
    return true;
  }
  // Whether `id` depends on `part` within the level.
  bool goes_into(int part, int id) const {
    std::set<int> made_of = {part};
    for (int next = part + 1; next <= id; ++next) {
      if (at(next).slot >= 0 && at(next).level < at(id).level) continue;  // found in scratch
      for (const int operand : {at(next).a, at(next).b, at(next).c})
        if (made_of.contains(operand)) made_of.insert(next);
    }
    return made_of.contains(id);
  }

  const RowProgram& program_;
  const LastLevels last_;
  std::set<int> is_taken_;
};

RowDomain domain_of(const RowProgram& program, const RowValue& value) {
  if (value.op == RowOp::load || value.op == RowOp::constant) return value.domain;
  if (is_row_reduction(value.op)) return RowDomain::row;
  if (is_group_reduction(value.op)) return RowDomain::group;
  RowDomain domain = RowDomain::constant;
  for (int operand : {value.a, value.b, value.c})
    if (operand >= 0) domain = std::max(domain, program.values[static_cast<std::size_t>(operand)].domain);
  return domain;
}

}  // namespace

std::string_view row_op_text(RowOp op) { return facts_of(op).text; }
int row_op_cost(RowOp op) { return facts_of(op).cost; }
bool is_row_reduction(RowOp op) { return op >= RowOp::row_sum && op <= RowOp::row_signed_max; }
bool is_group_reduction(RowOp op) { return op >= RowOp::group_sum && op <= RowOp::group_max; }
bool is_reduction(RowOp op) { return is_row_reduction(op) || is_group_reduction(op); }
bool is_sum(RowOp op) { return op == RowOp::row_sum || op == RowOp::group_sum || op == RowOp::group_sum_of_halves; }
int row_op_operands(RowOp op) { return facts_of(op).operands; }

int RowProgram::add(RowValue value) {
  if (value.op != RowOp::load && value.op != RowOp::constant) {
    value.domain = domain_of(*this, value);
    value.is_wide =
        value.op == RowOp::widen || (value.op != RowOp::narrow && values[static_cast<std::size_t>(value.a)].is_wide);
  }
  values.push_back(value);
  return static_cast<int>(values.size()) - 1;
}

// A slot is rounded up to whole steps of the row sum.
void RowProgram::keep(RowValue& value) {
  const std::int64_t floats = value.domain == RowDomain::group ? columns / group : columns;
  value.slot = static_cast<int>(slots.size());
  slots.push_back(scratch_floats);
  scratch_floats += (floats + kReferenceSumLanes - 1) / kReferenceSumLanes * kReferenceSumLanes;
}

// With a fast path no slot is shared: the fallback computes a level again, so the values that it reads must not be
// overwritten.
void RowProgram::share_slots() {
  if (find_short_ways(*this)) return;
  SlotSharing sharing(*this);
  std::vector<int> places;
  for (std::size_t id = 0; id < values.size(); ++id) places.push_back(sharing.taken_by(static_cast<int>(id)));
  std::map<int, std::vector<RowValue*>> waiting;  // by slot; the order of the slots stays
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (places[id] >= 0) values[id].slot = values[static_cast<std::size_t>(places[id])].slot;
    if (values[id].slot >= 0) waiting[values[id].slot].push_back(&values[id]);
  }
  slots.clear();
  scratch_floats = 0;
  for (const auto& [slot, there] : waiting) {
    keep(*there.front());
    for (RowValue* value : there) value->slot = there.front()->slot;
  }
}

void RowProgram::finish() {
  levels = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    RowValue& value = values[i];
    const bool is_element = value.domain == RowDomain::element;
    value.cost = is_element ? facts_of(value.op).cost : 0;
    int given = 0;
    for (int operand : {value.a, value.b, value.c}) {
      if (operand < 0) continue;
      CHECK(operand < static_cast<int>(i), "value {} of a row program uses {}, which is computed later", i, operand);
      const RowValue& from = values[static_cast<std::size_t>(operand)];
      value.level = std::max(value.level, from.level);
      value.needs_group = value.needs_group || (is_element && (from.needs_group || from.domain == RowDomain::group));
      if (is_element) value.cost = std::min(value.cost + from.cost, kMostCost);
      ++given;
    }
    CHECK(given == row_op_operands(value.op), "{} has {} operands", row_op_text(value.op), given);
    CHECK(value.domain == domain_of(*this, value), "value {} of a row program has a wrong domain", i);
    if (is_reduction(value.op)) ++value.level;
    levels = std::max(levels, is_reduction(value.op) ? value.level : value.level + 1);
  }
  for (const RowStore& store : stores)
    levels = std::max(levels, values[static_cast<std::size_t>(store.value)].level + 1);
  // Three kinds of values are kept in scratch: sums and maxima of groups; other values of groups that elements use; and
  // values of elements that a later level uses and that cost too much to compute again.
  for (RowValue& value : values)
    if (is_group_reduction(value.op)) keep(value);
  for (const RowValue& user : values) {
    const int used_in = is_reduction(user.op) ? user.level - 1 : user.level;
    for (int operand : {user.a, user.b, user.c}) {
      if (operand < 0) continue;
      RowValue& value = values[static_cast<std::size_t>(operand)];
      if (value.op == RowOp::load || value.is_wide || value.slot >= 0) continue;
      const bool is_spread = value.domain == RowDomain::group && user.domain == RowDomain::element;
      const bool crosses = value.domain == RowDomain::element && value.level < used_in && value.cost > kRecomputedCost;
      if (is_spread || crosses) keep(value);
    }
  }
  in_pairs = comes_in_pairs(*this);
  share_slots();
  find_overwritten(*this);
}

std::int64_t RowProgram::row_bytes() const {
  std::int64_t bytes = 0;
  for (const RowBuffer& buffer : buffers) {
    const std::int64_t written = tuning.parts > 1 ? buffer.part_stride : buffer.row_stride;
    const std::int64_t elements = buffer.is_output ? written : std::min(buffer.row_stride, columns);
    bytes += elements / buffer.elements_of_unit() * dtype_info(buffer.dtype).block_bytes;
  }
  return bytes;
}

}  // namespace weft
