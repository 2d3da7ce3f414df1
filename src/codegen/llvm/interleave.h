#pragma once

// Orders a function's instructions. RowEmitter emits the whole dependency chain of one vector after that of another,
// and LLVM's scheduler mostly keeps this order. A processor's reorder window holds a limited number of instructions.
// With chains of 80 dependent operations (300 cycles) it then contains five vectors at best, while the execution units
// could serve seven. This pass puts independent instructions next to each other, so that a small window is enough.

#include <llvm-c/Core.h>

namespace weft {

// Orders the operations of each block by when their results are needed, using latencies. Vectors that are computed
// together (BlockEmitter::kAtOnce) form one section, up to their stores. Sections keep their order, so no more vectors
// are live at once. An iteration that stores nothing, such as a sum over a row, is one section. Reads keep their order
// relative to writes, and writes to each other. No result changes.
void interleave_chains(LLVMValueRef function);

}  // namespace weft
