#pragma once

// Layers whose functions differ only in scalars, such as the epsilon of a norm, share one function. If row programs are
// equal except for numbers that schemas mark as liftable, the numbers that differ become loads. Each is loaded from a
// buffer of its own, the same for all rows, after the inputs. So row programs need no additional op and emitters no
// additional case. Numbers that are equal in all programs stay constants of the code. A program that equals no other
// one keeps all its constants.
//
// Simplifications that used a number stay valid: each program was simplified with its own number, and all came out
// alike. An emitter cannot prove a guard (short_ways.h) about a number that is loaded; it then emits the fallback,
// which computes the same bits.

#include <span>

#include "codegen/build_row_program.h"

namespace weft {

// Takes regions that may share functions. Their programs are finished and not tuned. Sets RowRegion::scalars.
void lift_scalars(std::span<RowRegion* const> regions);

}  // namespace weft
