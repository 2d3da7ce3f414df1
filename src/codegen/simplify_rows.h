#pragma once

// Replaces values of a row program by others that need fewer operations and store the same bits:
//
//   x / (1 + exp(-x))                    a special divisor, in fewer steps
//   the same for bf16, rounded to bf16   a divisor that is only as exact as bf16 needs; the same for a sigmoid
//   a conversion repeated                one conversion
//   limits of a bf16, as bf16            only the limits, if arithmetic or codes follow
//   round(x) as bf16                     fewer steps, if rounding cannot carry out of the fraction of a NaN
//   x / scale(max |x|) as codes          products with the reciprocal; no limits if the quotient is within them
//   limits and rounding before codes     a conversion in fewer steps, or one that includes them
//
// Values without users are removed.

#include "codegen/row_program.h"

namespace weft {

// Takes a program with all values and stores, before finish().
void simplify_rows(RowProgram& program);

}  // namespace weft
