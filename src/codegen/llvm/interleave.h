#pragma once

// The order of a function's instructions. Code comes as RowEmitter asks for it, one vector's whole chain of operations
// after another's, and LLVM's scheduler mostly leaves it so. A processor looks ahead so many instructions: of a chain
// of 80 operations that wait for each other 300 cycles it then sees five vectors at best, where its units could serve
// seven. Here what does not wait for each other comes to stand side by side, so that it need not look far.

#include <llvm-c/Core.h>

namespace weft {

// Puts the operations of each block in the order of when their results are wanted, by latencies. What was made side by
// side (BlockEmitter::kAtOnce) is one section, up to the stores of it, and sections follow one another as they did, so
// that no more vectors have to be held; a turn of a loop that stores nothing, as of sums over a row, is one as a whole.
// What reads memory stays where it was beside what writes, and so do writes to each other. No result changes.
void interleave_chains(LLVMValueRef function);

}  // namespace weft
