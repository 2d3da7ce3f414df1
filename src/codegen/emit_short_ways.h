#pragma once

// The values that the fast paths of a row program (short_ways.h) compute differently, through a Builder that supports
// them.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

// Runs before a fast path computes the codes of a row. It overwrites the scales of the groups with their rests, one
// vector of groups at a time. Slots have room for whole vectors.
template <class Builder>
void emit_rests_of_groups(Builder& builder, const RowProgram& program, const ShortWays& ways) {
  const auto slot_of = [&](int id) { return program.values[static_cast<std::size_t>(id)].slot; };
  const std::int64_t groups = program.columns / program.group;
  const auto group = builder.begin_columns(0, groups, builder.lanes());
  const auto scale = builder.load_slot(slot_of(ways.divisor), group, 0);
  const auto inverse = builder.load_slot(slot_of(ways.inverse), group, 0);
  builder.store_slot(slot_of(ways.divisor), group, 0, builder.inverse_rest(scale, inverse));
  builder.end_columns();
}

// Whether the fast path computes this element value of a level differently.
inline bool has_short_way(const ShortWays& ways, const RowProgram& program, int level, int id) {
  const auto value_at = [&](int of) -> const RowValue& { return program.values[static_cast<std::size_t>(of)]; };
  if (level == ways.level) return id == ways.early || ways.roundings.count(id) != 0;
  return level == ways.level + 1 && ways.divisor >= 0 && value_at(id).op == RowOp::short_quotient &&
         value_at(id).b == ways.divisor;
}

// Emits the vector at column + offset. operand(id) is the vector of an operand there.
template <class Builder, class Operand>
typename Builder::Value emit_short_value(Builder& builder, const RowProgram& program, const ShortWays& ways, int id,
                                         typename Builder::Index column, std::int64_t offset, Operand operand) {
  using Value = typename Builder::Value;
  const auto value_at = [&](int of) -> const RowValue& { return program.values[static_cast<std::size_t>(of)]; };
  const RowValue& value = value_at(id);
  if (id == ways.early) return builder.load_slot(value_at(ways.v).slot, column, offset);
  if (value.op == RowOp::convert) return builder.short_bf16(ways.roundings.at(id), operand(value.a));
  const Value a = operand(value.a), rest = operand(value.b), inverse = operand(value.c);
  return builder.shorter_quotient(a, rest, inverse);
}

// The value in a fast path that is software-pipelined (computed one iteration ahead), in the middle of its dependency
// chain; -1 for none. A v that is loaded without computation has a short chain, and pipelining would need more
// registers than there are.
inline int value_made_ahead(const ShortWays& ways, const RowProgram& program, int level) {
  int found = -1;
  for (int id = 0; id < static_cast<int>(program.values.size()) && !ways.roundings.empty(); ++id) {
    const RowValue& value = program.values[static_cast<std::size_t>(id)];
    const bool is_factor = level == ways.level && id != ways.v && ways.roundings.count(id) != 0;
    const bool is_quotient = level == ways.level + 1 && value.op == RowOp::short_quotient && value.a == ways.v;
    if (!is_factor && !is_quotient) continue;
    if (found >= 0) return -1;
    found = id;
  }
  return found;
}

// Whether all rows of a call read the same values of the guarded loads.
inline bool is_watched_once(const ShortWays& ways, const RowProgram& program) {
  return !ways.watched.empty() && std::all_of(ways.watched.begin(), ways.watched.end(), [&](int load) {
    const RowBuffer& buffer =
        program.buffers[static_cast<std::size_t>(program.values[static_cast<std::size_t>(load)].buffer)];
    return buffer.row_stride == 0 && buffer.numbers < 0;
  });
}

// Where the signs of fp8 codes are: already stored at the location of the codes (do_wait), or as the product of the
// signs in `buffers`, or else in the floats.
struct SignsOfCodes {
  bool do_wait = false;
  std::vector<int> buffers;
  bool are_in_floats = true;
};
inline SignsOfCodes signs_of_codes(const RowProgram& program, const ShortWays& ways) {
  SignsOfCodes signs{.do_wait = ways.signs_at >= 0, .are_in_floats = !ways.keeps_magnitudes};
  for (const int load : ways.signs) signs.buffers.push_back(program.values[static_cast<std::size_t>(load)].buffer);
  return signs;
}

}  // namespace weft
