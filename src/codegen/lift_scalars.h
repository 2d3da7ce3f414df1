#pragma once

// Functions of layers that differ only in scalars, such as the epsilon of a norm, become one. Where row programs are
// equal but for numbers that schemas mark as liftable, those numbers in which they differ are loaded: each from a
// buffer of its own that is the same for all rows, behind the inputs, so that a program has no op more and no emitter a
// case more for it. Numbers that are equal everywhere stay constants of the code, as does all of a program that no
// other one is like.
//
// What was simplified by a number stays so: each of the programs was by its own, and came out like the others. What an
// emitter proves by a number (short_ways.h) it cannot prove of one that is loaded, and takes the long way, with the
// same bits.

#include <span>

#include "codegen/build_row_program.h"

namespace weft {

// Of regions that may share functions; their programs are finished and not tuned. Sets RowRegion::scalars.
void lift_scalars(std::span<RowRegion* const> regions);

}  // namespace weft
