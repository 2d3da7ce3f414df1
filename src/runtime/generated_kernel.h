#pragma once

// A generated function as a kernel: of the host, where rows are handed out to threads in chunks, each thread with
// scratch of its own; or of a device, which has a block for each row.

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/loaded_code.h"

namespace weft {

// Row numbers that a function reads: operand `operand`, each in [0, limit).
struct RowNumbers {
  int operand = 0;
  std::int64_t limit = 0;
};

// What the runtime must know of a function over rows: f(buffers, row_begin, row_end, row_count), where buffers are the
// operands, the results, and this thread's scratch.
struct GeneratedFunction {
  std::string name;                // of its symbol, and behind a dot what else sets the kernel apart
  std::int64_t row_bytes = 0;      // read and written for a row
  std::int64_t scratch_bytes = 0;  // for a thread
  int parts = 1;                   // that a row of the tensors is computed in, each a row of the function
  int chunks = 0;                  // that rows are cut into for the threads; 0: by their bytes
  std::vector<RowNumbers> numbers = {};
  std::vector<int> over = {};  // Kernel::may_lie_over
};

// Its name in an object file or an image: the names of kernels that share one go on behind a dot.
std::string symbol_of(const GeneratedFunction& function);

// The kernel `name`@native for calls whose results have one row each for a row of the function. It keeps the code
// alive.
Kernel generated_kernel(const GeneratedFunction& function, std::shared_ptr<const LoadedCode> code, int threads);

// The same kernel where the call's queue (kernels/launch_queue.h) has code of the function: it is launched there, under
// the function's symbol, with a block of so many threads for each row. The code takes the addresses of operands and
// results, then a first row, which is 0, and holds row numbers to their tables itself. It needs no scratch, and is not
// for results that overlap operands. A call without a queue is a DeviceError: the host has no code of the function.
Kernel launched_kernel(const GeneratedFunction& function, int block_threads);

}  // namespace weft
