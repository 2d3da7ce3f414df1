#pragma once

// Values of a row program replaced by others that take fewer operations and give the same bits in what is stored:
//
//   x / (1 + exp(-x))                    a divisor of its own, in fewer steps
//   the same, of bf16 and rounded to it  a divisor that is only as exact as bf16 needs it; so for a sigmoid
//   a conversion of the same conversion  once
//   limits of a bf16 as bf16             the limits alone, where arithmetic or codes are made of it
//   round(x) as bf16                     fewer steps where no NaN can carry
//   x / scale as codes, by the largest   products with the reciprocal, and no limits where the quotient keeps them
//   limits and rounding before codes     a conversion in fewer steps, or that has them itself
//
// Values that nobody uses any more are left out.

#include "codegen/row_program.h"

namespace weft {

// Of a program whose values and stores are all there; before finish().
void simplify_rows(RowProgram& program);

}  // namespace weft
