#pragma once

// A generated function as a kernel. On the host, threads take rows in chunks and each thread has its own scratch. On a
// device, each row has its own block.

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/loaded_code.h"

namespace weft {

// Row indices that a function reads from operand `operand`; each must be in [0, limit).
struct RowNumbers {
  int operand = 0;
  std::int64_t limit = 0;
};

// The runtime's description of a function over rows: f(buffers, row_begin, row_end, row_count). `buffers` are the
// operands, the results, and this thread's scratch.
struct GeneratedFunction {
  std::string name;                // the symbol; a suffix after a dot may distinguish kernels that share it
  std::int64_t row_bytes = 0;      // bytes that a row reads and writes
  std::int64_t scratch_bytes = 0;  // for each thread
  int parts = 1;                   // parts of a tensor row; each is one row of the function
  int chunks = 0;                  // into which rows are divided for the threads; 0: decided by their bytes
  std::vector<RowNumbers> numbers = {};
  std::vector<int> over = {};  // Kernel::may_lie_over
};

// The function's name in an object file or an image: `name` without the suffix after the dot.
std::string symbol_of(const GeneratedFunction& function);

// The kernel `name`@native, for calls whose results have one row for each row of the function. The kernel keeps the
// code alive.
Kernel generated_kernel(const GeneratedFunction& function, std::shared_ptr<const LoadedCode> code, int threads);

// The same kernel for a device. The call's queue (kernels/launch_queue.h) has the function's code and launches it under
// the function's symbol, with one block of `block_threads` threads for each row. The code takes the addresses of the
// operands and results, then the first row, which is 0; it checks row indices against their limits itself. It needs no
// scratch, and does not support results that overlap operands. A call without a queue is a DeviceError, because the
// host has no code of the function.
Kernel launched_kernel(const GeneratedFunction& function, int block_threads);

}  // namespace weft
