#pragma once

// What the short ways of a row program (short_ways.h) compute otherwise, through a Builder that takes them.

#include <cstdint>
#include <vector>

#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

// Before the codes of a row that takes short ways: the rests in the place of the scales, a vector of groups at a time.
// Slots have room for whole ones.
template <class Builder>
void emit_rests(Builder& builder, const RowProgram& program, const ShortWays& ways) {
  if (ways.divisor < 0) return;
  const auto slot_of = [&](int id) { return program.values[static_cast<std::size_t>(id)].slot; };
  const std::int64_t groups = program.columns / program.group;
  const auto group = builder.begin_columns(0, groups, builder.lanes());
  const auto scale = builder.load_slot(slot_of(ways.divisor), group, 0);
  const auto inverse = builder.load_slot(slot_of(ways.inverse), group, 0);
  builder.store_slot(slot_of(ways.divisor), group, 0, builder.inverse_rest(scale, inverse));
  builder.end_columns();
}

// Whether an element's value of a level is made otherwise.
inline bool has_short_way(const ShortWays& ways, const RowProgram& program, int level, int id) {
  const auto value_at = [&](int of) -> const RowValue& { return program.values[static_cast<std::size_t>(of)]; };
  if (level == ways.level) return id == ways.early || id == value_at(ways.maximum).a || ways.roundings.count(id) != 0;
  return level == ways.level + 1 && ways.divisor >= 0 && value_at(id).op == RowOp::short_quotient &&
         value_at(id).b == ways.divisor;
}

// Of the vector at column + offset; operand(id) is the vector there of an operand.
template <class Builder, class Operand>
typename Builder::Value emit_short_value(Builder& builder, const RowProgram& program, const ShortWays& ways, int id,
                                         typename Builder::Index column, std::int64_t offset, Operand operand) {
  using Value = typename Builder::Value;
  const auto value_at = [&](int of) -> const RowValue& { return program.values[static_cast<std::size_t>(of)]; };
  const RowValue& value = value_at(id);
  if (id == ways.early) return builder.load_slot(value_at(ways.v).slot, column, offset);
  if (value.op == RowOp::abs) return builder.bf16_magnitude(operand(value.a));
  if (value.op == RowOp::convert) return builder.short_bf16(ways.roundings.at(id), operand(value.a));
  const Value a = operand(value.a), rest = operand(value.b), inverse = operand(value.c);
  return builder.shorter_quotient(a, rest, inverse);
}

inline std::vector<int> sign_buffers(const RowProgram& program, const ShortWays& ways) {
  std::vector<int> buffers;
  for (const int load : ways.signs) buffers.push_back(program.values[static_cast<std::size_t>(load)].buffer);
  return buffers;
}

}  // namespace weft
