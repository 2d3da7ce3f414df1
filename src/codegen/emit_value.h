#pragma once

// Emits one value of a row program from its operands, through the Builder of emit.h.

#include "codegen/row_program.h"

namespace weft {

// The codes that a `convert` stores.
template <class Builder>
typename Builder::Value emit_codes(Builder& builder, const RowValue& convert, typename Builder::Value floats) {
  return convert.is_plain ? builder.encode_plain(convert.dtype, floats) : builder.encode(convert.dtype, floats);
}

// operand(id) returns the Value of an operand. `value` is neither a load nor a reduction.
template <class Builder, class Operand>
typename Builder::Value emit_value(Builder& builder, const RowValue& value, Operand operand) {
  using Value = typename Builder::Value;
  switch (value.op) {
    case RowOp::constant:
      return builder.constant(value.number, value.is_wide);
    case RowOp::convert:
      return builder.decode(value.dtype, emit_codes(builder, value, operand(value.a)));
    case RowOp::replace_nan:
      return builder.binary(value.op, operand(value.a), builder.constant(value.number, false));
    case RowOp::replace_zero: {
      const Value a = operand(value.a), b = operand(value.b);
      return builder.replace_zero(a, static_cast<float>(value.number), b);
    }
    case RowOp::select_at_most: {
      const Value a = operand(value.a), b = operand(value.b), c = operand(value.c);
      return builder.select_at_most(a, static_cast<float>(value.number), b, c);
    }
    case RowOp::quotient:
    case RowOp::short_quotient: {
      const Value a = operand(value.a), b = operand(value.b), c = operand(value.c);
      return builder.ternary(value.op, a, b, c);
    }
    default:
      break;
  }
  const Value a = operand(value.a);
  return row_op_operands(value.op) == 1 ? builder.unary(value.op, a) : builder.binary(value.op, a, operand(value.b));
}

}  // namespace weft
